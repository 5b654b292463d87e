"""CrossGrad on a linear network: who moves which images, who learns what."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_net import DOMAINS, LinearNet, made_batch, made_state

from comen_jax.methods import crossgrad
from comen_jax.methods.options.labelled import CrossGrad

BATCH = made_batch()


def first_state():
  plain = made_state()
  added, own = crossgrad._copy(
    jax.random.key(1),
    {"params": plain.params["backbone"], "batch_stats": {}},
    head="head",
    num_sources=3,
  )
  return made_state(own, **added)


STATE = first_state()


def run(params, **options):
  value, (_, _, metrics) = crossgrad.cross_trained(
    STATE.replace(params=params),
    BATCH,
    jax.random.key(0),
    model=LinearNet(),
    domain_model=LinearNet(num_classes=3),
    options=CrossGrad(**options),
  )
  return value, metrics


def plain(params, images, labels):
  logits = LinearNet().apply({"params": params}, images, True).logits
  return -jax.nn.log_softmax(logits)[jnp.arange(8), labels].mean()


def test_the_domain_network_is_the_backbone_with_a_new_head():
  ours, copy = STATE.params["backbone"], STATE.params["domain_net"]
  np.testing.assert_array_equal(copy["body"]["kernel"], ours["body"]["kernel"])
  assert copy["head"]["kernel"].shape == (4, 3)
  assert not np.allclose(copy["head"]["kernel"], ours["head"]["kernel"])


def test_with_step_0_it_is_plain_training():
  grad = jax.jit(jax.value_and_grad(partial(run, step=0.0), has_aux=True))
  (value, metrics), gradient = grad(STATE.params)
  for name, labels in (("backbone", BATCH.label), ("domain_net", DOMAINS)):
    of = jax.jit(jax.value_and_grad(plain))
    want, want_gradient = of(STATE.params[name], BATCH.image, labels)
    part = {"backbone": "loss_cls", "domain_net": "loss_domain"}[name]
    assert metrics[part] == pytest.approx(float(want), rel=1e-6)
    jax.tree.map(
      partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-7),
      gradient[name],
      want_gradient,
    )
  assert value == metrics["loss_cls"] + metrics["loss_domain"]


def test_each_network_moves_the_images_of_the_other():
  step, share = 5.0, 0.25
  _, metrics = jax.jit(partial(run, step=step, share=share, clip=0.02))(
    STATE.params
  )
  f, d = STATE.params["backbone"], STATE.params["domain_net"]
  towards = jax.jit(jax.grad(plain, argnums=1))
  shift = np.clip(towards(d, BATCH.image, DOMAINS), -0.02, 0.02)
  assert np.abs(shift).max() == np.float32(0.02)  # The limit is met.
  moved = BATCH.image + step * shift
  want = 0.75 * plain(f, BATCH.image, BATCH.label)
  want += 0.25 * plain(f, moved, BATCH.label)
  assert metrics["loss_cls"] == pytest.approx(float(want), rel=1e-5)
  shift = np.clip(towards(f, BATCH.image, BATCH.label), -0.02, 0.02)
  want = 0.75 * plain(d, BATCH.image, DOMAINS)
  want += 0.25 * plain(d, BATCH.image + step * shift, DOMAINS)
  assert metrics["loss_domain"] == pytest.approx(float(want), rel=1e-5)


@pytest.mark.parametrize(
  ("part", "other"), [("loss_cls", "domain_net"), ("loss_domain", "backbone")]
)
def test_neither_network_learns_from_the_loss_of_the_other(part, other):
  gradient = jax.jit(jax.grad(lambda p: run(p, step=5.0)[1][part]))(
    STATE.params
  )
  assert not any(leaf.any() for leaf in jax.tree.leaves(gradient[other]))


def test_a_sum_over_the_batch_moves_images_further():
  images, gradient = jnp.zeros((4, 1)), jnp.full((4, 1), 0.01)
  move = lambda **o: crossgrad.moved(images, gradient, options=CrossGrad(**o))
  np.testing.assert_allclose(move(), 0.01)
  np.testing.assert_allclose(move(summed=True), 0.04)
  np.testing.assert_allclose(move(summed=True, clip=0.03, step=2.0), 0.06)
