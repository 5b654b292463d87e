"""MMLD: style, clusters that keep their numbers, and its loss in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import toy
from golden_helpers import made_experiment

from comen_jax.data.views import make_views
from comen_jax.errors import UserError
from comen_jax.methods import adversary, mmld
from comen_jax.methods.comen import clustering
from comen_jax.methods.options.label_free import Mmld
from comen_jax.nn.digits_cnn import DigitsCNN

KEY = jax.random.key(0)


def test_clusters_keep_their_numbers():
  before = np.array([0, 0, 0, 1, 1, 2, 2, 2])
  labels = np.array([2, 2, 1, 0, 0, 1, 1, 1])  # 2 was 0, 0 was 1, 1 was 2.
  found = clustering.renumber(labels, before, 3)
  assert found.tolist() == [0, 0, 2, 1, 1, 2, 2, 2]
  # Two clusters that were one: the larger part keeps the number.
  found = clustering.renumber(
    np.array([1, 1, 2, 0, 0]), np.array([0, 0, 0, 2, 2]), 3
  )
  assert found.tolist() == [0, 0, 1, 2, 2]
  unknown = clustering.renumber(labels, np.full(8, -1), 3)
  assert len({(a, b) for a, b in zip(labels, unknown)}) == 3


def test_weights_are_inverse_sizes_that_sum_to_their_number():
  found = mmld.inverse_sizes(np.array([10, 20, 40]))
  np.testing.assert_allclose(found, 3 * np.array([4, 2, 1]) / 7, rtol=1e-6)


def test_principal_components_are_those_of_sklearn():
  from sklearn.decomposition import PCA

  rng = np.random.default_rng(0)
  style = rng.normal(size=(40, 6)) * [1, 5, 2, 9, 3, 4]
  found = mmld.principal_components(style, 3)
  want = PCA(3).fit_transform(style)
  np.testing.assert_allclose(np.abs(found), np.abs(want), atol=1e-6)
  assert mmld.principal_components(style, 6) is style


def test_style_is_mean_and_deviation_of_the_first_two_layers():
  model = DigitsCNN(3, norm="none")
  views = make_views("half", "none", 16)
  task = toy.toy_task(model=model, image_size=16, views=views)
  images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), np.uint8)
  method = mmld.create(task, Mmld(width=4))
  state = toy.toy_state(method, task)
  batch = toy.toy_batch().replace(image=images)
  found = jax.jit(
    lambda: mmld.style_step(
      state, batch, task=task, layers=("layer1", "layer2")
    )
  )()
  maps = {}
  tap = lambda name, x: maps.setdefault(name, x)
  model.apply(
    {"params": state.params["backbone"]},
    task.views.evaluate(images),
    train=False,
    tap=tap,
  )
  want = []
  for name in ("layer1", "layer2"):
    x = np.asarray(maps[name], np.float64).reshape(2, -1, 64)
    want += [x.mean(axis=1), np.sqrt(x.var(axis=1, ddof=1) + 1e-5)]
  np.testing.assert_allclose(
    found, np.concatenate(want, 1), rtol=1e-4, atol=1e-6
  )


@pytest.mark.parametrize(("step", "epoch"), [(0, 0), (22, 5)])
def test_the_loss_is_its_equation(step, epoch):
  task = toy.toy_task()  # 10 epochs of 4 steps.
  method = mmld.create(task, Mmld(width=6, dropout=0.0))
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  domains = np.array([0, 1, 2, 0, 0, 1, 0, 2])
  weights = np.array([0.5, 1.0, 1.5])
  memory = mmld.Memory(
    jnp.asarray(np.pad(domains, (0, 92)), jnp.int32),
    jnp.asarray(weights, jnp.float32),
  )
  state = state.replace(memory=memory, step=jnp.asarray(step, jnp.int32))
  loss, (_, _, metrics) = jax.jit(method.stages[0].loss)(state, batch, KEY)

  features, logits = toy.numpy_toy(state.params, batch.image)
  layers = jax.tree.map(np.asarray, state.params["discriminator"])
  x = features
  for name in ("Dense_0", "Dense_1"):
    x = np.maximum(x @ layers[name]["kernel"] + layers[name]["bias"], 0)
  found = x @ layers["Dense_2"]["kernel"] + layers["Dense_2"]["bias"]
  q, p = toy.softmax(found), toy.softmax(logits)
  total = weight = 0.0
  for i, m in enumerate(domains):
    total -= weights[m] * np.log(q[i, m])
    weight += weights[m]
  a = 2 / (1 + np.exp(-10 * epoch / 10)) - 1
  want = toy.numpy_cross_entropy(logits, batch.label) + total / weight
  want += a * -(p * np.log(p)).sum(axis=1).mean()
  np.testing.assert_allclose(loss, want, rtol=1e-5)
  np.testing.assert_allclose(metrics["loss_domain"], total / weight, rtol=1e-5)


def test_the_adversary_is_reversed_and_starts_at_nothing():
  task = toy.toy_task()
  options = Mmld(
    width=6, dropout=0.0, entropy_weight=0.0, adversary_weight=0.5,
    adversary_clip=1e9,
  )  # fmt: skip
  method = mmld.create(task, options)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  domains = np.arange(100, dtype=np.int32) % 3
  memory = state.memory.replace(domains=jnp.asarray(domains))

  @jax.jit
  def gradient(step):
    moved = state.replace(memory=memory, step=step)
    loss = lambda p: method.stages[0].loss(moved.replace(params=p), batch, KEY)
    return jax.grad(lambda p: loss(p)[0])(state.params)

  def part(params, plain):
    """CE(class), or CE(cluster) without its reversal."""
    kernel, head = params["backbone"]["kernel"], params["backbone"]["head"]
    x = jax.nn.relu(batch.image.reshape(toy.B, -1) @ kernel)
    if not plain:
      return -jax.nn.log_softmax(x @ head)[
        jnp.arange(toy.B), batch.label
      ].mean()
    net = adversary.Discriminator(3, 6)
    logits = net.apply({"params": params["discriminator"]}, x)
    return -jax.nn.log_softmax(logits)[
      jnp.arange(toy.B), domains[: toy.B]
    ].mean()

  of_class, plain = jax.jit(
    lambda: [jax.grad(part)(state.params, which) for which in (False, True)]
  )()
  assert jnp.abs(plain["backbone"]["kernel"]).max() > 1e-3
  for step, epoch in ((0, 0), (20, 5)):
    found = gradient(jnp.asarray(step, jnp.int32))
    a = 2 / (1 + np.exp(-10 * epoch / 10)) - 1
    for name, factor in (("backbone", -0.1 * 0.5 * a), ("discriminator", 1)):
      trees = (found[name], of_class[name], plain[name])
      for g, c, d in zip(*map(jax.tree.leaves, trees)):
        np.testing.assert_allclose(g, c + factor * d, rtol=1e-4, atol=1e-7)


def test_new_layers_learn_faster_only_beside_pretrained_ones():
  task = toy.toy_task(model=DigitsCNN(3))
  assert mmld.create(task, Mmld()).stages[0].factors == {}
  stage = mmld.create(task._replace(pretrained=True), Mmld()).stages[0]
  assert stage.factors == {"discriminator": 10.0, "backbone/head": 10.0}


def test_clusters_are_found_again_before_every_epoch(monkeypatch):
  traced, step = [], mmld.style_step
  record = lambda *args, **kwargs: traced.append(1) or step(*args, **kwargs)
  monkeypatch.setattr(mmld, "style_step", record)
  experiment = made_experiment("mmld")
  stage = experiment.method.stages[0]
  assert stage.prepare_each_epoch
  state, report = experiment.prepare(experiment.init(), 0)
  rows = experiment.sources.rows
  known = np.asarray(state.memory.domains)
  assert (known[rows] >= 0).all()
  assert (np.delete(known, rows) == -1).all()  # The target is not clustered.
  np.testing.assert_array_equal(report.latent.probs.argmax(1), known[rows])
  sizes = np.bincount(known[rows], minlength=3)
  want = mmld.inverse_sizes(sizes)
  np.testing.assert_allclose(state.memory.weights, want)
  assert report.metrics == {}
  again, report = experiment.prepare(state, 0)
  # The same network and key give the same clusters, under the same numbers.
  np.testing.assert_array_equal(again.memory.domains, known)
  assert report.metrics == {"kept_domains": 1.0}
  assert len(traced) == 1  # Compiled once for all epochs.
  assert optax.tree.norm(again.memory.weights - state.memory.weights) == 0


def test_more_clusters_than_images_are_one_line():
  with pytest.raises(
    UserError, match="num_domains=5 is more than the 4 source"
  ):
    mmld.check_images(Mmld(), "none", 5, 4)
