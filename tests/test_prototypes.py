"""Compares the memory of prototypes with a plain loop."""

import jax
import numpy as np
import pytest
from jax.test_util import check_grads

from comen_jax import prototypes
from comen_jax.prototypes import Prototypes

M, K, D, B = 2, 3, 4, 9
LABELS = np.array([0, 0, 1, 2, 2, 0, 1, 1, 0])
DOMAINS = np.array([0, 0, 0, 0, 0, 1, 1, -1, -1])
WEIGHTS = np.array([1, 0, 1, 0.5, 2, 1, 0, 1, 1], np.float32)

_update = jax.jit(prototypes.update)


def _features():
  return np.random.default_rng(0).normal(size=(B, D)).astype(np.float32)


def _memory():
  values = np.random.default_rng(1).normal(size=(M, K, D)).astype(np.float32)
  seen = np.array([[1, 0, 1], [0, 1, 1]], bool)
  return Prototypes(np.where(seen[..., None], values, 0), seen)


def _loop(memory, features, labels, domains, decay, weights):
  values = np.array(memory.values, np.float64)
  seen = np.array(memory.seen)
  features = np.asarray(features, np.float64)
  for m in range(M):
    for k in range(K):
      rows = [
        i
        for i in range(len(features))
        if domains[i] == m and labels[i] == k and weights[i] > 0
      ]
      if not rows:
        continue
      local = sum(weights[i] * features[i] for i in rows)
      local = local / sum(weights[i] for i in rows)
      if seen[m, k]:
        local = decay * values[m, k] + (1 - decay) * local
      values[m, k], seen[m, k] = local, True
  return values, seen


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_update_agrees_with_the_equation(weights):
  got = _update(_memory(), _features(), LABELS, DOMAINS, weights=weights)
  w = np.ones(B) if weights is None else weights
  values, seen = _loop(_memory(), _features(), LABELS, DOMAINS, 0.7, w)
  np.testing.assert_allclose(got.values, values, rtol=2e-4, atol=2e-4)
  np.testing.assert_array_equal(got.seen, seen)


def test_absent_cells_are_kept_bit_for_bit():
  memory = _memory()
  got = _update(memory, _features(), LABELS, DOMAINS)
  np.testing.assert_array_equal(got.values[1, 2], memory.values[1, 2])
  ignored = np.full(B, -1)
  got = _update(memory, _features(), LABELS, ignored)
  jax.tree.map(np.testing.assert_array_equal, got, memory)
  got = _update(
    memory, _features(), LABELS, abs(DOMAINS), weights=np.zeros(B, np.float32)
  )
  jax.tree.map(np.testing.assert_array_equal, got, memory)


def test_gradient_flows_through_the_batch_only():
  def f(features):
    return _update(_memory(), features, LABELS, DOMAINS).values

  check_grads(f, (_features(),), order=1, atol=2e-2, rtol=2e-2)

  def total(values, features):
    memory = _memory().replace(values=values)
    return _update(memory, features, LABELS, DOMAINS).values.sum()

  old, new = jax.grad(total, (0, 1))(_memory().values, _features())
  assert not old.any()
  # Cell (0, 0) is known and has two images, (0, 1) is new and has one.
  np.testing.assert_allclose(new[0], 0.3 / 2, rtol=1e-6)
  np.testing.assert_allclose(new[2], 1, rtol=1e-6)
  assert not new[7:].any()


def test_from_features_is_the_mean_of_every_cell():
  build = jax.jit(prototypes.from_features, static_argnums=(3, 4))
  got = build(_features(), LABELS, DOMAINS, M, K)
  nothing = Prototypes.zeros(M, K, D)
  want = _loop(nothing, _features(), LABELS, DOMAINS, 0.7, np.ones(B))
  np.testing.assert_allclose(got.values, want[0], rtol=2e-4, atol=2e-4)
  np.testing.assert_array_equal(got.seen, want[1])
  assert not got.seen[1, 2] and not got.values[1, 2].any()


def test_zeros_has_seen_nothing():
  nothing = Prototypes.zeros(M, K, D)
  assert nothing.values.shape == (M, K, D) and not nothing.values.any()
  assert nothing.seen.shape == (M, K) and not nothing.seen.any()
  assert nothing.seen.dtype == bool
  assert len(jax.tree.leaves(nothing)) == 2
