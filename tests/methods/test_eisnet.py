"""EISNet: queue and triplets against plain loops, and the whole loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from comen_jax.methods import eisnet, jigen
from comen_jax.methods.options.label_free import EISNet

KEY = jax.random.key(4)


def _unit(rng, count, size=3):
  x = rng.normal(size=(count, size))
  return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def test_the_queue_keeps_the_newest():
  queue, labels = jnp.zeros((5, 1)), jnp.full((5,), -1, jnp.int32)
  for number in range(4):
    new = jnp.asarray([[10.0 * number], [10.0 * number + 1]])
    queue, labels = eisnet.enqueue(
      queue, labels, new, jnp.full((2,), number, jnp.int32)
    )
    if number == 0:
      assert list(labels) == [0, 0, -1, -1, -1]
  assert list(queue[:, 0]) == [30, 31, 20, 21, 10]
  assert list(labels) == [3, 3, 2, 2, 1]


def test_a_batch_larger_than_the_queue_fills_it():
  queue, labels = eisnet.enqueue(
    jnp.zeros((2, 1)), jnp.full((2,), -1, jnp.int32),
    jnp.arange(3.0)[:, None], jnp.arange(3, dtype=jnp.int32),
  )  # fmt: skip
  assert list(queue[:, 0]) == [0, 1]
  assert list(labels) == [0, 1]


def _plain_triplets(q, k, label, queue, queue_label, margin, most):
  """Pair by pair and negative by negative."""
  total = count = 0.0
  for i in range(len(q)):
    for j in range(i + 1, len(q)):
      if label[i] != label[j]:
        continue
      near = ((q[i] - k[j]) ** 2).sum()
      found = []
      for n in range(len(queue)):
        far = ((q[i] - queue[n]) ** 2).sum()
        semi_hard = 0 < near - far + margin < margin
        if queue_label[n] not in (-1, label[i]) and semi_hard:
          found.append(near - far + margin)
      if found:
        total += min(most, len(found)) * np.mean(found)
        count += min(most, len(found))
  return total, count


@pytest.mark.parametrize("most", [256, 3])
def test_triplets_equal_a_plain_loop(most):
  rng = np.random.default_rng(0)
  q, k, queue = _unit(rng, 6), _unit(rng, 6), _unit(rng, 20)
  label = np.array([0, 1, 0, 1, 0, 2], np.int32)
  queue_label = rng.integers(-1, 3, 20).astype(np.int32)
  options = EISNet(negatives=most)
  got = jax.jit(eisnet.triplets, static_argnums=5)(
    q, k, label, queue, queue_label, options
  )
  want = _plain_triplets(q, k, label, queue, queue_label, 2.0, most)
  np.testing.assert_allclose(got, want, rtol=1e-5)
  assert want[1] > 5


def test_a_batch_without_pairs_has_no_triplets_and_a_finite_gradient():
  rng = np.random.default_rng(0)
  q, queue = _unit(rng, 3), _unit(rng, 4)
  labels = np.array([0, 1, 2], np.int32)
  total = lambda q: eisnet.triplets(
    q, q, labels, queue, np.array([0, 1, -1, -1], np.int32), EISNet()
  )[0]
  value, gradient = jax.jit(jax.value_and_grad(total))(q)
  assert value == 0
  np.testing.assert_array_equal(gradient, np.zeros_like(q))


def _embed(params, features):
  x = features @ np.asarray(params["kernel"]) + np.asarray(params["bias"])
  return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("pretrained", [True, False])
def test_the_teacher_equals_its_closed_form(pretrained):
  rng = np.random.default_rng(0)
  networks = rng.normal(size=(6, 3)).astype(np.float32)
  teacher = {"a": jnp.asarray(networks[0])}
  for step, network in enumerate(networks):
    teacher = eisnet.follow(
      teacher, {"a": jnp.asarray(network)}, jnp.asarray(step),
      decay=0.7, pretrained=pretrained,
    )  # fmt: skip
  # A network counts (1 - m) times what follows.
  m = [0, *[0.7] * 5] if pretrained else [0, 1 / 2, 2 / 3, 0.7, 0.7, 0.7]
  weights = np.array([(1 - m[i]) * np.prod(m[i + 1 :]) for i in range(6)])
  assert weights.sum() == pytest.approx(1)
  np.testing.assert_allclose(teacher["a"], weights @ networks, rtol=1e-5)


@pytest.mark.parametrize("pretrained", [True, False])
def test_the_teacher_passes_no_gradient_to_the_network(pretrained):
  total = lambda x: eisnet.follow(
    x, x, jnp.asarray(2), decay=0.5, pretrained=pretrained
  )
  # Only what it was before counts: m is 1/2 in both cases.
  assert jax.grad(total)(1.0) == 0.5


@pytest.mark.parametrize("pretrained", [True, False])
def test_the_loss_is_its_equation_and_the_teacher_follows(pretrained):
  options = EISNet(embedding=4, queue=12, decay=0.95)
  m = 0.95 if pretrained else 0.9  # 1 - 1 / 10 in step 9.
  task = toy.toy_task(pretrained=pretrained)
  method = eisnet.create(task, options)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  old = state.memory
  moved = {
    **state.params,
    "backbone": jax.tree.map(lambda x: x + 0.05, state.params["backbone"]),
    "embedding": jax.tree.map(lambda x: x - 0.1, state.params["embedding"]),
  }
  state = state.replace(params=moved, step=jnp.asarray(9))  # Epoch 2 of 10.
  loss, (_, memory, metrics) = jax.jit(method.stages[0].loss)(state, batch, KEY)

  for name in ("backbone", "embedding"):
    want = jax.tree.map(
      lambda t, p: m * t + (1 - m) * p, old.teacher[name], moved[name]
    )
    for leaf, value in memory.teacher[name].items():
      np.testing.assert_allclose(value, want[leaf], rtol=1e-5, atol=1e-7)
  teacher_features, _ = toy.numpy_toy(memory.teacher, batch.image)
  k = _embed(memory.teacher["embedding"], teacher_features)
  np.testing.assert_allclose(memory.queue[: toy.B], k, rtol=1e-4, atol=1e-5)
  np.testing.assert_array_equal(
    memory.labels, [*np.asarray(batch.label), -1, -1, -1, -1]
  )

  puzzle = jigen.make_puzzle(toy.SIZE, options)
  images, order = jigen.shuffle(
    jax.random.split(KEY, 3)[1], batch.image, puzzle, task.views
  )
  features, logits = toy.numpy_toy(moved, images)
  head = moved["jigsaw"]
  order_logits = features @ np.asarray(head["kernel"]) + np.asarray(
    head["bias"]
  )
  total, count = _plain_triplets(
    _embed(moved["embedding"], features), k, np.asarray(batch.label),
    k, np.asarray(batch.label), 2.0, 256,
  )  # fmt: skip
  assert count == metrics["triplets"] > 0
  want = toy.numpy_cross_entropy(logits, batch.label)
  want += 0.7 * toy.numpy_cross_entropy(order_logits, order)
  want += (0.5 + 0.5 * 2 / 10) * total / count
  np.testing.assert_allclose(loss, want, rtol=1e-4)


@pytest.mark.parametrize("pretrained", [True, False])
def test_only_the_network_gets_a_gradient_and_its_statistics_stay(pretrained):
  options = EISNet(embedding=4, queue=12, order_weight=0.0, triplet_weight=5.0)
  task = toy.toy_task(model=toy.Normed(), pretrained=pretrained)
  method = eisnet.create(task, options)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  # Statistics of no batch, and a teacher that is not the network.
  state = state.replace(
    step=jnp.asarray(3),
    batch_stats=jax.tree.map(lambda x: x + 2, state.batch_stats),
    memory=state.memory.replace(
      teacher=jax.tree.map(lambda x: x - 0.3, state.memory.teacher)
    ),
  )

  def loss(params, teacher):
    memory = state.memory.replace(teacher=teacher)
    at = state.replace(params=params, memory=memory)
    return method.stages[0].loss(at, batch, KEY)

  gradient = jax.jit(jax.grad(loss, (0, 1), has_aux=True))
  (found, of_teacher), (stats, memory, _) = gradient(
    state.params, state.memory.teacher
  )

  label, queued = np.asarray(batch.label), np.asarray(memory.labels)
  pairs = np.triu(label[:, None] == label[None], 1)
  others = (queued != label[:, None]) & (queued >= 0)
  chosen = pairs[:, :, None] & others[:, None]

  def run(params, images, train):
    outputs, updated = task.model.apply(
      {"params": params["backbone"], "batch_stats": state.batch_stats},
      images, train=train, mutable=["batch_stats"],
    )  # fmt: skip
    embedding = params["embedding"]
    x = outputs.features @ embedding["kernel"] + embedding["bias"][None]
    unit = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    return outputs.logits, unit, updated["batch_stats"]

  def by_hand(params):
    puzzle = jigen.make_puzzle(toy.SIZE, options)
    puzzle_key = jax.random.split(KEY, 3)[1]
    images, _ = jigen.shuffle(puzzle_key, batch.image, puzzle, task.views)
    logits, q, stats = run(params, images, True)
    k = run(memory.teacher, batch.image, not pretrained)[1]
    each = jax.nn.log_softmax(logits)[jnp.arange(toy.B), batch.label]
    near = jnp.square(q[:, None] - k[None]).sum(axis=2)[:, :, None]
    far = jnp.square(q[:, None] - memory.queue[None]).sum(axis=2)[:, None]
    excess = near - far + 2.0  # [B, B, Q], anchor by positive by negative.
    found = chosen & (excess > 0) & (excess < 2)
    return -each.mean() + 2.5 * excess.mean(where=found), (stats, k)

  gradient = jax.jit(jax.grad(by_hand, has_aux=True))
  want, (of_network, k) = gradient(state.params)
  close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
  close(memory.queue[: toy.B], k)
  jax.tree.map(close, stats, of_network)
  jax.tree.map(close, found, want)
  assert not any(leaf.any() for leaf in jax.tree.leaves(of_teacher))
