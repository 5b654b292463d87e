"""COMEN's three losses against plain loops in numpy, in float64.

A backbone of a few matrices stands in for the real ones, so that numpy can
repeat the whole computation.
"""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax import prototypes
from comen_jax.data.batches import Batch
from comen_jax.methods.comen import Options, losses
from comen_jax.nn.backbone import Outputs
from comen_jax.nn.protogr import ProtoGR
from comen_jax.nn.style import style_statistics
from comen_jax.train_state import TrainState

B, M, K, D = 6, 3, 2, 4
THRESHOLD = 0.5


class Backbone(nn.Module):
  """Features depend on p, as they do behind an SDNorm."""

  norm: str = "sdnorm"

  @nn.compact
  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    style = style_statistics(images)
    normal = nn.initializers.normal(1.0)
    logits = style @ self.param("predictor", normal, (style.shape[1], M))
    p = jax.nn.softmax(logits) if domain_probs is None else domain_probs
    flat = images.reshape(len(images), -1)
    kernel = self.param("kernel", normal, (flat.shape[1], D))
    gain = self.param("gain", normal, (M, D))
    features = nn.relu(flat @ kernel) * (p @ gain)
    head = self.param("head", normal, (D, K))
    count = self.variable("batch_stats", "count", jnp.zeros, ())
    if train:
      count.value = count.value + 1.0
    return Outputs(features, features @ head, style, logits)


@pytest.fixture(scope="module")
def case():
  """(state, batch, key): a memory with one cell that was never seen."""
  rng = np.random.default_rng(0)
  images = jnp.asarray(rng.normal(size=(B, 2, 2, 3)), jnp.float32)
  variables = Backbone().init(jax.random.key(0), images, train=False)
  graph = ProtoGR(K, THRESHOLD)
  nodes, valid = jnp.zeros((M * K, D)), jnp.ones(M * K, bool)
  params = {
    "backbone": variables["params"],
    "protogr": graph.init(jax.random.key(1), nodes, valid)["params"],
  }
  seen = np.array([[True, True], [True, False], [True, True]])
  values = rng.normal(size=(M, K, D)) * seen[..., None]
  memory = losses.Memory(
    prototypes.Prototypes(jnp.asarray(values, jnp.float32), jnp.asarray(seen)),
    jnp.asarray([-1, 0, 1, 2, 0, 1, 2, 0], jnp.int32),
  )
  state = TrainState(
    params, variables["batch_stats"], memory, (), jnp.zeros((), jnp.int32)
  )
  batch = Batch(
    image=images,
    label=jnp.asarray([0, 1, 0, 1, 0, 0], jnp.int32),
    row=jnp.asarray([1, 2, 3, 4, 5, 7], jnp.int32),
    mask=jnp.ones(B),
  )
  return state, batch, jax.random.key(2)


def call(loss, case, **bound):
  state, batch, key = case
  bound = partial(loss, model=Backbone(), **bound)
  return jax.jit(bound)(state, batch, key)


def softmax(x):
  e = np.exp(x - x.max())
  return e / e.sum()


def forward(case, probs=None):
  """(features, logits, p) of every image, one by one."""
  state, batch, _ = case
  params = {k: np.float64(v) for k, v in state.params["backbone"].items()}
  features, logits, ps = [], [], []
  for image in np.float64(batch.image):
    mean = image.mean(axis=(0, 1))
    std = np.sqrt(((image - mean) ** 2).mean(axis=(0, 1)) + 1e-5)
    p = softmax(np.concatenate([mean, std]) @ params["predictor"])
    ps.append(p)
    used = p if probs is None else probs
    hidden = np.maximum(image.reshape(-1) @ params["kernel"], 0)
    features.append(hidden * (used @ params["gain"]))
    logits.append(features[-1] @ params["head"])
  return np.array(features), np.array(logits), np.array(ps)


def cross_entropy(logits, labels):
  terms = [-np.log(softmax(x)[y]) for x, y in zip(logits, labels)]
  return np.mean(terms)


def test_warmup_is_cross_entropy_at_equal_probabilities(case):
  loss, (stats, memory, metrics) = call(losses.warmup_loss, case, num_domains=M)
  _, logits, _ = forward(case, np.full(M, 1 / M))
  want = cross_entropy(logits, case[1].label)
  np.testing.assert_allclose(loss, want, rtol=1e-5)
  assert stats["count"] == 1 and not metrics
  jax.tree.map(np.testing.assert_array_equal, memory, case[0].memory)


def test_discover_adds_entropy_imbalance_and_anchor(case):
  loss, (stats, memory, metrics) = call(
    losses.discover_loss,
    case,
    options=Options(entropy_weight=0.7, balance_weight=0.4, anchor_weight=0.2),
  )
  _, logits, ps = forward(case)
  loss_cls = cross_entropy(logits, case[1].label)
  entropy = np.mean([-sum(p_m * np.log(p_m) for p_m in p) for p in ps])
  mean = ps.mean(axis=0)
  mean_entropy = -sum(p_m * np.log(p_m) for p_m in mean)
  want = loss_cls + 0.7 * entropy + 0.4 * (np.log(M) - mean_entropy)
  state, batch, _ = case
  clusters = np.array(state.memory.domains)[np.array(batch.row)]
  want += 0.2 * np.mean([-np.log(p[m]) for p, m in zip(ps, clusters)])
  agree = np.mean([p.argmax() == m for p, m in zip(ps, clusters)])
  np.testing.assert_allclose(metrics["domain_agreement"], agree, rtol=1e-6)
  np.testing.assert_allclose(loss, want, rtol=1e-5)
  np.testing.assert_allclose(metrics["loss_cls"], loss_cls, rtol=1e-5)
  np.testing.assert_allclose(metrics["loss_d"], entropy, rtol=1e-5)
  np.testing.assert_allclose(
    metrics["effective_domains"], np.exp(mean_entropy), rtol=1e-5
  )
  assert stats["count"] == 1
  jax.tree.map(np.testing.assert_array_equal, memory, case[0].memory)


def moved_prototypes(case, features, decay):
  """Eq. 6 and 7, cell by cell -> (values, seen)."""
  state, batch, _ = case
  values = np.float64(state.memory.prototypes.values)
  seen = np.array(state.memory.prototypes.seen)
  domains = np.array(state.memory.domains)[np.array(batch.row)]
  for m in range(M):
    for k in range(K):
      own = [
        f
        for f, d, y in zip(features, domains, np.array(batch.label))
        if d == m and y == k
      ]
      if own:
        local = np.mean(own, axis=0)
        old = values[m, k]
        values[m, k] = (
          decay * old + (1 - decay) * local if seen[m, k] else local
        )
        seen[m, k] = True
  return values, seen


def protogr_loss(params, values, seen):
  """Eq. 8 to 12, edge by edge."""
  params = jax.tree.map(np.float64, params)
  nodes = [(m, k) for m in range(M) for k in range(K) if seen[m, k]]
  x0 = np.array([values[cell] for cell in nodes])
  count = len(nodes)
  affinity = np.zeros((count, count))
  for i in range(count):
    for j in range(count):
      norms = np.linalg.norm(x0[i]) * np.linalg.norm(x0[j])
      cosine = x0[i] @ x0[j] / norms
      affinity[i, j] = 1.0 if i == j else cosine * (cosine > THRESHOLD)
  x = x0
  for layer in ("attention_1", "attention_2"):
    hidden = x @ params[layer]["kernel"]
    a = params[layer]["attention"][:, 0]
    new = []
    for i in range(count):
      weights = np.zeros(count)
      for j in range(count):
        e = a @ np.concatenate([hidden[i], hidden[j]])
        weights[j] = affinity[i, j] * np.exp(e if e > 0 else 0.2 * e)
      weights /= weights.sum()
      mixed = sum(w * h for w, h in zip(weights, hidden))
      new.append(np.maximum(mixed, 0))
    x = np.array(new)
  head = params["head"]
  logits = (x + x0) @ head["kernel"] + head["bias"]
  return cross_entropy(logits, [k for _, k in nodes])


def protoccl_loss(values, seen, temperature):
  """Eq. 14 on unit vectors from the mean prototype, pair by pair."""
  nodes = [(m, k) for m in range(M) for k in range(K) if seen[m, k]]
  mean = sum(values[cell] for cell in nodes) / len(nodes)
  unit = {
    cell: (values[cell] - mean) / np.linalg.norm(values[cell] - mean)
    for cell in nodes
  }
  similar = lambda a, b: np.exp(unit[a] @ unit[b] / temperature)
  terms = []
  for anchor in nodes:
    positives = [n for n in nodes if n[1] == anchor[1] and n != anchor]
    negatives = sum(similar(anchor, n) for n in nodes if n[1] != anchor[1])
    if positives:
      pairs = [similar(anchor, n) for n in positives]
      terms.append(np.mean([-np.log(s / (s + negatives)) for s in pairs]))
  return np.mean(terms)


@pytest.mark.parametrize(
  ("protogr_weight", "protoccl_weight"), [(0.3, 0.2), (0.3, 0.0), (0.0, 0.2)]
)
def test_encode_adds_both_prototype_losses(
  case, protogr_weight, protoccl_weight
):
  loss, (stats, memory, metrics) = call(
    losses.encode_loss, case, graph=ProtoGR(K, THRESHOLD),
    options=Options(
      protogr_weight=protogr_weight, protoccl_weight=protoccl_weight,
      prototype_decay=0.7, temperature=0.5,
    ),
  )  # fmt: skip
  features, logits, ps = forward(case)
  want = {"loss_cls": cross_entropy(logits, case[1].label)}
  total = want["loss_cls"]
  values, seen = moved_prototypes(case, features, 0.7)
  if protogr_weight:
    graph = case[0].params["protogr"]
    want["loss_protogr"] = protogr_loss(graph, values, seen)
    total += protogr_weight * want["loss_protogr"]
  if protoccl_weight:
    want["loss_protoccl"] = protoccl_loss(values, seen, 0.5)
    total += protoccl_weight * want["loss_protoccl"]
  domains = np.array(case[0].memory.domains)[np.array(case[1].row)]
  want["domain_agreement"] = np.mean(ps.argmax(axis=1) == domains)
  np.testing.assert_allclose(loss, total, rtol=1e-4)
  assert metrics.keys() == want.keys()
  for name, value in want.items():
    np.testing.assert_allclose(metrics[name], value, rtol=1e-4, err_msg=name)
  np.testing.assert_allclose(
    memory.prototypes.values, values, rtol=1e-5, atol=1e-6
  )
  np.testing.assert_array_equal(memory.prototypes.seen, seen)
  np.testing.assert_array_equal(memory.domains, case[0].memory.domains)
  assert stats["count"] == 1


def test_the_stored_prototypes_carry_no_gradient(case):
  """What is stored must not tie this step to the next."""
  state, batch, key = case
  loss = partial(
    losses.encode_loss,
    model=Backbone(),
    graph=ProtoGR(K, THRESHOLD),
    options=Options(),
  )

  def stored(params):
    _, (_, memory, _) = loss(state.replace(params=params), batch, key)
    return memory.prototypes.values.sum()

  gradient = jax.jit(jax.grad(stored))(state.params)
  assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradient))
