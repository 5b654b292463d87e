"""Compares the losses with plain loops and checks their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from comen_jax import losses

VALID = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]], bool)

# Compiled once for all tests.
_mean_prediction_entropy = jax.jit(losses.mean_prediction_entropy)
_protoccl = jax.jit(losses.protoccl, static_argnames=("normalize", "centre"))
_protoccl_sum_and_grad = jax.jit(
  jax.value_and_grad(lambda *args: losses.protoccl(*args).sum()),
  static_argnums=3,
)


def _logits():
  return np.random.default_rng(0).normal(0, 2, (6, 3)).astype(np.float32)


def _softmax(row):
  e = np.exp(np.asarray(row, np.float64) - max(row))
  return e / e.sum()


def _entropy(p):
  return -sum(x * np.log(x) for x in p if x > 0)


def _protoccl_loop(c, valid, tau, normalize, centre=False):
  M, K, _ = c.shape
  c = np.asarray(c, np.float64)
  if centre:
    c = c - sum(c[cell] for cell in zip(*np.nonzero(valid))) / valid.sum()
  if normalize:
    c = c / np.sqrt(np.maximum((c**2).sum(-1, keepdims=True), 1e-12))
  cells = [(m, k) for m in range(M) for k in range(K) if valid[m, k]]
  out = np.zeros((M, K))
  for m, k in cells:
    s = {cell: c[m, k] @ c[cell] / tau for cell in cells}
    positives = [cell for cell in cells if cell[1] == k and cell != (m, k)]
    negatives = [cell for cell in cells if cell[1] != k]
    for positive in positives:
      bottom = np.exp(s[positive]) + sum(np.exp(s[n]) for n in negatives)
      out[m, k] -= np.log(np.exp(s[positive]) / bottom) / len(positives)
  return out


def _prototypes():
  return np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32)


def test_entropy_agrees_with_the_equation():
  f = jax.jit(losses.prediction_entropy)
  want = [_entropy(_softmax(row)) for row in _logits()]
  np.testing.assert_allclose(f(_logits()), want, rtol=2e-4, atol=2e-4)
  check_grads(f, (_logits(),), order=1, atol=2e-2, rtol=2e-2)


def test_entropy_of_extreme_logits_is_finite_with_its_gradient():
  logits = np.array([[1e4, -1e4, 0], [0, 0, 0]], np.float32)
  total = lambda x: losses.prediction_entropy(x).sum()
  value, grad = jax.jit(jax.value_and_grad(total))(logits)
  np.testing.assert_allclose(value, np.log(3), rtol=1e-6)
  assert np.isfinite(grad).all()


def test_cross_entropy_agrees_with_the_equation():
  labels = np.array([0, 1, 2, 2, 1, 0])
  f = jax.jit(lambda x: losses.cross_entropy(x, labels))
  want = [-np.log(_softmax(r)[y]) for r, y in zip(_logits(), labels)]
  np.testing.assert_allclose(f(_logits()), want, rtol=2e-4, atol=2e-4)
  check_grads(f, (_logits(),), order=1, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("weights", [None, [1, 0, 2, 0, 0.5, 1], [0] * 6])
def test_mean_prediction_entropy_agrees_with_a_loop(weights):
  w = np.ones(6) if weights is None else np.array(weights, np.float64)
  given = None if weights is None else w.astype(np.float32)
  mean = sum(w[i] * _softmax(_logits()[i]) for i in range(6))
  want = _entropy(mean / max(w.sum(), 1e-9))
  f = lambda x: _mean_prediction_entropy(x, given)
  np.testing.assert_allclose(f(_logits()), want, rtol=2e-4, atol=2e-4)
  check_grads(f, (_logits(),), order=1, atol=2e-2, rtol=2e-2)


def test_mean_prediction_entropy_of_collapsed_and_of_even_predictions():
  f = jax.jit(jax.value_and_grad(losses.mean_prediction_entropy))
  value, grad = f(np.array([[0, -1e3, -1e3]] * 3, np.float32))
  np.testing.assert_allclose(value, 0, atol=1e-6)
  assert np.isfinite(grad).all()
  value, grad = f(1e3 * np.eye(3, dtype=np.float32))
  np.testing.assert_allclose(value, np.log(3), rtol=1e-5)
  assert np.isfinite(grad).all()


def test_node_classification_labels_nodes_by_class():
  got = jax.jit(losses.node_classification)(_logits())
  want = [-np.log(_softmax(_logits()[n])[n % 3]) for n in range(6)]
  np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)
  with pytest.raises(ValueError, match=r"5 nodes.*3 classes"):
    losses.node_classification(jnp.ones((5, 3)))


@pytest.mark.parametrize(
  ("normalize", "centre"), [(True, False), (False, False), (True, True)]
)
@pytest.mark.parametrize("valid", [VALID, np.ones_like(VALID)])
def test_protoccl_agrees_with_the_equation(valid, normalize, centre):
  c = 1 + _prototypes()
  f = lambda c: _protoccl(c, valid, 0.7, normalize=normalize, centre=centre)
  want = _protoccl_loop(c, valid, 0.7, normalize, centre)
  np.testing.assert_allclose(f(c), want, rtol=2e-4, atol=2e-4)
  check_grads(f, (c,), order=1, atol=2e-2, rtol=2e-2)


def test_protoccl_by_default_normalises_at_temperature_one_half():
  want = _protoccl_loop(_prototypes(), VALID, 0.5, normalize=True)
  got = _protoccl(_prototypes(), VALID)
  np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_protoccl_is_zero_without_positive_or_without_validity():
  value = np.asarray(_protoccl(_prototypes(), VALID))
  lonely = VALID.sum(0, keepdims=True) < 2
  np.testing.assert_array_equal(value != 0, VALID & ~lonely)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
  "valid", [VALID, np.zeros_like(VALID), VALID & (np.arange(4) == 0)[None]]
)
def test_protoccl_of_missing_prototypes_has_finite_gradients(valid, normalize):
  c = np.where(valid[..., None], 1e3 * _prototypes(), 0)
  c[0, 0] = 0  # A valid prototype may be a zero vector.
  value, grad = _protoccl_sum_and_grad(c, valid, 0.5, normalize)
  assert np.isfinite(value) and np.isfinite(grad).all()
  np.testing.assert_array_equal(
    np.asarray(grad)[~valid], np.zeros(((~valid).sum(), 5))
  )


def test_masked_mean_leaves_out_the_masked():
  values = jnp.array([1.0, jnp.nan, 3.0])
  mask = jnp.array([1.0, 0.0, 1.0])
  value, grad = jax.value_and_grad(losses.masked_mean)(values, mask)
  np.testing.assert_allclose(value, 2)
  np.testing.assert_allclose(grad, [0.5, 0, 0.5])
  assert losses.masked_mean(values, jnp.zeros(3, bool)) == 0
