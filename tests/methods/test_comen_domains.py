"""What keeps latent domains and parameters as they should be."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_helpers import fixed_state, made_experiment

from comen_jax import prototypes, steps
from comen_jax.methods.comen import Options, diagnosis, losses
from comen_jax.nn.backbone import STYLE_COPY
from comen_jax.nn.protogr import ProtoGR, affinity
from comen_jax.train_state import forget_momentum, paths_above

pytestmark = pytest.mark.usefixtures("plain_convolutions")


@pytest.fixture(scope="module")
def experiment():
  return made_experiment()


@pytest.fixture(scope="module")
def batch(experiment):
  batch = next(experiment.train_batches(0))
  return batch.replace(
    image=experiment.views.train(experiment.key, batch.image)
  )


def momentum(state, path):
  found = []
  jax.tree_util.tree_map_with_path(
    lambda keys, value: found.append(value) if paths_above(keys, [path]) else 0,
    state.opt_state,
  )
  assert found
  return found


def copy(tree):
  return jax.tree.map(np.array, tree)


@pytest.mark.parametrize("stage", [0, 1])
def test_nothing_moves_protogr_before_encode(experiment, stage):
  """Neither weight decay nor a momentum that would act later."""
  state = fixed_state(experiment)
  before = copy(state.params["protogr"])
  raw = next(experiment.train_batches(0))
  state, _ = experiment.train_steps[stage](state, raw, experiment.key)
  jax.tree.map(np.testing.assert_array_equal, state.params["protogr"], before)
  assert not any(np.any(m) for m in momentum(state, "protogr"))
  assert any(np.any(m) for m in momentum(state, "backbone/conv1"))


def test_a_new_predictor_starts_without_momentum(experiment):
  ones = lambda tree: jax.tree.map(jnp.ones_like, tree)
  state = experiment.init()
  state = state.replace(opt_state=ones(state.opt_state))
  state, _ = experiment.prepare(state, 1)
  assert not any(
    np.any(m) for m in momentum(state, "backbone/domain_predictor")
  )
  assert all(np.all(m) for m in momentum(state, "backbone/conv1"))
  again = forget_momentum(state, ("backbone/conv1",))
  assert not any(np.any(m) for m in momentum(again, "backbone/conv1"))


def test_warmup_teaches_each_branch_as_fast_as_batch_norm(experiment, batch):
  def gradients(experiment):
    state = experiment.init()
    loss = experiment.method.stages[0].loss
    value = lambda p: loss(state.replace(params=p), batch, experiment.key)[0]
    return jax.jit(jax.grad(value))(state.params)["backbone"]

  ours, theirs = gradients(experiment), gradients(made_experiment("deepall_bn"))
  for name in ("norm1", "norm4"):
    for leaf in ("scale", "bias"):
      want = np.asarray(theirs[name][leaf])
      for branch in ours[name][leaf]:
        np.testing.assert_allclose(
          branch, want, rtol=1e-3, atol=1e-4 * np.abs(want).max()
        )


def moved(state, layer="conv1"):
  """The state after the first convolution has learned something."""
  backbone = dict(state.params["backbone"])
  backbone[layer] = jax.tree.map(lambda x: 1.5 * x + 0.1, backbone[layer])
  return state.replace(params={**state.params, "backbone": backbone})


@pytest.mark.parametrize("style_from", ["copy", "start", "pixels"])
def test_domains_stay_when_the_first_convolution_moves(style_from):
  experiment = made_experiment(style_from=style_from)
  first = experiment.init()
  found_in = moved(first)  # What warm-up has made of it.
  state, _ = experiment.prepare(found_in, 1)
  raw = next(experiment.train_batches(0))
  look = lambda s: experiment.feature_step(s, raw, experiment.key, False)
  before, after = look(state), look(moved(state))
  np.testing.assert_array_equal(after.domain_logits, before.domain_logits)
  assert np.abs(after.features - before.features).max() > 0.01
  if style_from == "pixels":
    assert STYLE_COPY not in state.batch_stats
    assert before.style.shape[1] == 2 * 9
    return
  kept = found_in if style_from == "copy" else first
  jax.tree.map(
    np.testing.assert_array_equal,
    state.batch_stats[STYLE_COPY],
    kept.params["backbone"]["conv1"],
  )


def test_prepare_remembers_the_clusters_and_reports_agreement(experiment):
  state, report = experiment.prepare(experiment.init(), 1)
  rows = experiment.sources.rows
  clusters = np.asarray(state.memory.domains)[rows]
  assert set(clusters.tolist()) == {0, 1, 2}
  agree = (report.latent.probs.argmax(axis=1) == clusters).mean()
  _, encode = experiment.prepare(state, 2)
  assert encode.metrics["clustering_agreement"] == pytest.approx(agree)
  assert agree > 0.7  # Few images.


def test_a_domain_that_became_empty_is_found_again(experiment):
  state, _ = experiment.prepare(experiment.init(), 1)
  backbone = dict(state.params["backbone"])
  predictor = dict(backbone["domain_predictor"])
  last = dict(predictor["Dense_1"])
  last["bias"] = jnp.asarray([0.0, -1e3, 0.0])
  backbone["domain_predictor"] = {**predictor, "Dense_1": last}
  # Branches that differ, as after training.
  branches = jnp.asarray([[1.0], [5.0], [2.0]])
  stats = {**state.batch_stats}
  stats["norm1"] = jax.tree.map(lambda x: x * branches, stats["norm1"])
  state = state.replace(
    params={**state.params, "backbone": backbone}, batch_stats=stats
  )
  outputs = experiment.outputs(state, experiment.sources.rows)
  before = outputs.domain_logits.argmax(axis=1)
  after, report = experiment.prepare(state, 2)
  latent = report.latent.probs.argmax(axis=1)
  assert np.bincount(latent, minlength=3).all()
  assert report.warnings[0].startswith("latent domain 1 had become empty (0 of")
  # The domains that were left keep their numbers, and so their branches. The
  # branch of the new one starts as the mean of the others.
  same = lambda numbers: (np.array(numbers)[latent] == before).mean()
  assert same([0, 1, 2]) == max(map(same, itertools.permutations(range(3))))
  var = np.asarray(after.batch_stats["norm1"]["var"])
  np.testing.assert_allclose(var[0], 1)
  np.testing.assert_allclose(var[1], 1.5)
  np.testing.assert_allclose(var[2], 2)


def test_with_true_domains_sdnorm_does_not_read_the_predictor(
  experiment, batch
):
  state = fixed_state(experiment)
  backbone = dict(state.params["backbone"])
  backbone["domain_predictor"] = jax.tree.map(
    lambda x: x + 1.0, backbone["domain_predictor"]
  )
  other = state.replace(params={**state.params, "backbone": backbone})
  model = experiment.method.stages[2].loss.keywords["model"]
  graph = ProtoGR(4)

  @partial(jax.jit, static_argnames="true_domains")
  def loss_cls(state, true_domains=False):
    _, (_, _, metrics) = losses.encode_loss(
      state, batch, experiment.key, model=model, graph=graph,
      options=Options(true_domains=true_domains),
    )  # fmt: skip
    return metrics["loss_cls"]

  assert loss_cls(state, true_domains=True) == loss_cls(
    other, true_domains=True
  )
  assert loss_cls(state) != loss_cls(other)


def test_centred_affinity_and_shared_layers():
  rng = np.random.default_rng(0)
  nodes = 5 + rng.normal(size=(6, 4)).astype(np.float32)
  valid = np.array([True] * 5 + [False])
  got = affinity(nodes, valid, 0.2, centre=True)
  inner = nodes[:5] - nodes[:5].mean(axis=0)
  unit = inner / np.linalg.norm(inner, axis=1, keepdims=True)
  want = unit @ unit.T
  want = np.where(want > 0.2, want, 0)
  np.testing.assert_allclose(got[:5, :5], want, atol=1e-5)
  assert not np.any(got[5])
  assert (affinity(nodes, valid, 0.2)[:5, :5] > 0).all()

  params = ProtoGR(2, shared=True).init(jax.random.key(0), nodes, valid)
  assert set(params["params"]) == {"attention_1", "head"}


def test_straight_through_changes_the_gradient_but_no_value():
  rng = np.random.default_rng(0)
  memory = prototypes.Prototypes(
    jnp.asarray(rng.normal(size=(1, 2, 3)), jnp.float32), jnp.ones((1, 2), bool)
  )
  features = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32)
  labels, domains = jnp.asarray([0, 1, 1, 1]), jnp.zeros(4, jnp.int32)

  def total(features, straight_through):
    new = prototypes.update(
      memory, features, labels, domains, 0.7,
      straight_through=straight_through,
    )  # fmt: skip
    return new.values.sum(), new.values

  plain, values = jax.grad(total, has_aux=True)(features, False)
  straight, same = jax.grad(total, has_aux=True)(features, True)
  np.testing.assert_array_equal(values, same)
  np.testing.assert_allclose(straight, plain / 0.3, rtol=1e-5)


def test_diagnosis_reads_what_training_reads(experiment, batch):
  """With true domains p is not F_d's; a combination changes the images."""
  state = fixed_state(experiment)
  model = experiment.method.stages[2].loss.keywords["model"]
  seen = []

  def forward(model, state, batch, key, probs=None):
    seen.append(probs)
    return steps.forward(model, state, batch, key, probs)

  def diagnose(**options):
    traced = partial(
      diagnosis.diagnose, model=model, graph=ProtoGR(4), forward=forward,
      options=Options(**options),
    )  # fmt: skip
    jax.eval_shape(traced, state, batch, experiment.key)

  diagnose()
  diagnose(true_domains=True)
  assert seen[0] is None
  assert seen[1].shape == (24, 3)
  stage = made_experiment("comen_fact").method.stages[2]
  assert stage.diagnose.keywords["forward"] is stage.loss.keywords["forward"]


def test_diagnosis_measures_gradients_and_geometry(experiment):
  state = fixed_state(experiment)
  raw = next(experiment.train_batches(0))
  found = experiment.diagnose_steps[2](state, raw, experiment.key)
  assert set(found) == {
    "share_protogr", "share_protoccl", "edge_share", "cosine_within",
    "cosine_between",
  }  # fmt: skip
  assert all(float(v) > 0 for v in found.values())
  values = np.asarray(state.memory.prototypes.values)
  seen = np.asarray(state.memory.prototypes.seen)
  cells = [(m, k) for m in range(3) for k in range(4) if seen[m, k]]
  within, between, edges = [], [], []
  for a in cells:
    for b in cells:
      if a != b:
        x, y = values[a], values[b]
        cosine = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        (within if a[1] == b[1] else between).append(cosine)
        edges.append(cosine > 0.5)
  assert float(found["cosine_within"]) == pytest.approx(
    np.mean(within), abs=1e-5
  )
  assert float(found["cosine_between"]) == pytest.approx(
    np.mean(between), abs=1e-5
  )
  assert float(found["edge_share"]) == pytest.approx(np.mean(edges), abs=1e-6)


def recoloured(style_view: str):
  """COMEN with an augmentation that changes colours, and one batch of it."""
  made = made_experiment(style_view=style_view, augment={"jitter": 0.4})
  state = fixed_state(made)
  raw = next(made.train_batches(0))
  view = steps.training_view(raw, made.views, jax.random.key(5))
  return made, state, raw, view


def test_p_is_that_of_the_picture_not_of_its_training_view():
  logits = {}
  for style_view in ("picture", "training"):
    made, state, raw, view = recoloured(style_view)
    loss = made.method.stages[1].loss.keywords
    outputs, _ = jax.jit(partial(loss["forward"], loss["model"]))(
      state, view, made.key
    )
    logits[style_view] = np.asarray(outputs.domain_logits)
  of = lambda images: steps.predict(loss["model"], state, images).domain_logits
  picture = of(made.views.evaluate(raw.image))
  np.testing.assert_allclose(logits["picture"], picture, atol=1e-5)
  np.testing.assert_allclose(logits["training"], of(view.image), atol=1e-5)
  assert np.abs(logits["picture"] - logits["training"]).max() > 0.01


def test_without_augmentation_a_step_reads_no_second_picture(experiment):
  """Both views are the same, so the plain forward pass is taken."""
  assert experiment.views.same
  loss = experiment.method.stages[1].loss.keywords
  assert loss["forward"] is steps.forward
