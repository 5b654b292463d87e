"""COMEN with another method: what is changed, and whose domains count."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import toy
from conftest import load_config

from comen_jax import config as config_lib
from comen_jax import steps
from comen_jax.data.batches import Batch
from comen_jax.errors import UserError
from comen_jax.methods import comen, options, registry
from comen_jax.methods.comen import combined
from comen_jax.methods.options.label_free import MixStyle
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.train_state import TrainState

KEY = jax.random.key(4)
COMBINATIONS = ("comen_mixstyle", "comen_randconv", "comen_fact")


@pytest.fixture(scope="module")
def case():
  model = DigitsCNN(3, norm="sdnorm", num_domains=2)
  images = jax.random.normal(jax.random.key(0), (4, 16, 16, 3))
  variables = jax.jit(lambda: model.init(jax.random.key(1), images, False))()
  state = TrainState.create(
    {"backbone": variables["params"]},
    variables["batch_stats"],
    {},
    optax.sgd(0.1),
  )
  labels = jnp.array([0, 1, 2, 0])
  return model, state, Batch(images, labels, jnp.arange(4), jnp.ones(4))


def run(forward, case, probs=None):
  model, state, batch = case
  return jax.jit(lambda: forward(model, state, batch, KEY, probs))()


def assert_close(found, want):
  jax.tree.map(
    lambda f, w: np.testing.assert_allclose(f, w, rtol=1e-4, atol=1e-5),
    found,
    want,
  )


def test_pictures_that_do_not_change_give_the_plain_pass(case):
  same = combined.changing_pictures(lambda key, images: images)
  assert_close(run(same, case), run(steps.forward, case))


def test_a_changed_picture_has_the_domains_of_the_real_one(case):
  model, state, batch = case
  change = lambda key, images: images[:, ::-1] ** 2
  found, _ = run(combined.changing_pictures(change), case)
  real, _ = run(steps.forward, case)
  assert_close(found.style, real.style)
  assert_close(found.domain_logits, real.domain_logits)
  changed = model, state, batch.replace(image=change(KEY, batch.image))
  own, _ = run(steps.forward, changed)
  assert np.abs(own.domain_logits - real.domain_logits).max() > 0.01
  p = jax.nn.softmax(real.domain_logits)
  want, _ = run(steps.forward, changed, probs=p)
  assert_close(found.logits, want.logits)
  # Given p, as in warm-up, is taken as it is.
  p = jnp.full((4, 2), 0.5)
  found, _ = run(combined.changing_pictures(change), case, probs=p)
  want, _ = run(steps.forward, changed, probs=p)
  assert_close(found.logits, want.logits)
  assert_close(found.domain_logits, real.domain_logits)


@pytest.mark.parametrize("detach", [False, True])
def test_p_trains_the_predictor_only_where_the_plain_pass_does(case, detach):
  model, state, batch = case
  model = model.clone(detach_probs=detach)
  forward = combined.changing_pictures(lambda key, images: -images)

  def loss(params):
    outputs, _ = forward(
      model, state.replace(params={"backbone": params}), batch, KEY
    )
    return jnp.square(outputs.logits).sum()

  gradient = jax.jit(jax.grad(loss))(state.params["backbone"])
  moved = optax.tree.norm(gradient["domain_predictor"])
  assert moved == 0 if detach else moved > 1e-4


def test_mixed_maps_leave_the_style_alone(case):
  plain, _ = run(steps.forward, case)
  never = combined.mixing_styles(MixStyle(probability=0.0))
  assert_close(run(never, case)[0], plain)
  always = combined.mixing_styles(MixStyle(probability=1.0, alpha=5.0))
  mixed, _ = run(always, case)
  assert_close(mixed.domain_logits, plain.domain_logits)
  assert_close(mixed.style, plain.style)
  assert np.abs(mixed.logits - plain.logits).max() > 1e-3


@pytest.mark.parametrize("name", COMBINATIONS)
def test_options_come_from_both_blocks(name):
  config = load_config("digits")
  config.method = name
  config_lib.check(config)
  assert config_lib.norm(config) == "sdnorm"
  assert config_lib.backbone_options(config)["style_from"] == "copy"
  own, other = config_lib.method_options(config)
  assert own.portion == config.comen.portion
  kept = options.recorded(config.to_dict()).keys() & options.OPTIONS.keys()
  assert kept == {name.removeprefix("comen_")}
  assert other == options.OPTIONS[name.removeprefix("comen_")]()
  assert not registry.METHODS[name].domain_labels


def test_what_each_method_refuses_is_refused():
  config = load_config("digits")
  config.method, config.mixstyle.layers = "comen_mixstyle", ("layer7",)
  with pytest.raises(UserError, match="digits_cnn has no 'layer7'"):
    config_lib.check(config)
  config.mixstyle.layers, config.comen.clustering = (), "none"
  with pytest.raises(UserError, match=r"comen\.clustering='none'"):
    config_lib.check(config)


def test_without_any_part_of_comen_the_change_is_still_made(monkeypatch):
  """COMEN is then DeepAll: cross-entropy of the changed pictures."""
  task = toy.toy_task(norm="batch")
  off = comen.Options(protogr=False, protoccl=False)
  seen = []
  monkeypatch.setattr(
    combined,
    "random_convolution",
    lambda key, images, **_: seen.append(images.shape) or 0 * images,
  )
  pair = off, options.OPTIONS["randconv"]()
  method = combined.create_randconv(task, pair)
  state = toy.toy_state(method, task)
  loss, _ = method.stages[0].loss(state, toy.toy_batch(), KEY)
  np.testing.assert_allclose(loss, np.log(toy.K), rtol=1e-5)
  assert seen
