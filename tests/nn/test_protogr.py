"""Compares graph, attention and ProtoGR with plain loops."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from networks import drawn

from comen_jax.nn.protogr import GraphAttention, ProtoGR, affinity

VALID = np.array([1, 1, 0, 1, 1, 1], bool)

_affinity = jax.jit(affinity)


def _nodes():
  nodes = np.random.default_rng(0).normal(0.5, 1, (6, 4)).astype(np.float32)
  nodes[4] = 0  # A valid node may be a zero vector.
  return nodes


def _affinity_loop(nodes, valid, threshold):
  nodes = np.asarray(nodes, np.float64)
  N = len(nodes)
  A = np.zeros((N, N))
  for i in range(N):
    for j in range(N):
      if not (valid[i] and valid[j]):
        continue
      norms = [np.sqrt(max(nodes[n] @ nodes[n], 1e-12)) for n in (i, j)]
      cosine = nodes[i] @ nodes[j] / (norms[0] * norms[1])
      A[i, j] = 1 if i == j else cosine if cosine > threshold else 0
  return A


def _attention_loop(params, nodes, A):
  W = np.asarray(params["kernel"], np.float64)
  a = np.asarray(params["attention"], np.float64)[:, 0]
  h = np.asarray(nodes, np.float64) @ W
  out = np.zeros_like(h)
  for i in range(len(h)):
    weights = np.zeros(len(h))
    for j in range(len(h)):
      e = a @ np.concatenate([h[i], h[j]])
      weights[j] = A[i, j] * np.exp(e if e > 0 else 0.2 * e)
    if weights.sum() > 0:
      out[i] = np.maximum((weights / weights.sum()) @ h, 0)
  return out


@pytest.mark.parametrize("threshold", [-0.2, 0.0, 0.5, 1.0])
def test_affinity_agrees_with_the_equation(threshold):
  got = _affinity(_nodes(), VALID, threshold)
  want = _affinity_loop(_nodes(), VALID, threshold)
  np.testing.assert_allclose(got, want, atol=1e-5)
  assert (np.asarray(got) != 0).sum() == (want != 0).sum()


def test_affinity_of_invalid_nodes_is_zero_and_of_valid_ones_has_self_loops():
  A = np.asarray(_affinity(_nodes(), VALID))
  np.testing.assert_array_equal(np.diag(A), VALID.astype(np.float32))
  assert not A[2].any() and not A[:, 2].any()
  np.testing.assert_array_equal(A[4], np.eye(6)[4])


def test_affinity_threshold_is_strict():
  nodes = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
  A = _affinity(nodes, np.ones(3, bool), 1.0)
  np.testing.assert_array_equal(A, np.eye(3))


def test_affinity_gradient_flows_through_values():
  nodes, valid = _nodes()[[0, 1, 3, 5]], np.ones(4, bool)
  f = lambda x: _affinity(x, valid)
  assert np.count_nonzero(f(nodes)) > 4
  check_grads(f, (nodes,), order=1, atol=2e-2, rtol=2e-2)


def test_graph_attention_agrees_with_the_equations():
  nodes = _nodes()
  A = np.random.default_rng(1).uniform(0.1, 1, (6, 6)).astype(np.float32)
  A = A * VALID * VALID[:, None] * (A > 0.3)
  layer = GraphAttention(5)
  # With three times the weights, LeakyReLU sees both signs in a row.
  variables = jax.tree.map(lambda x: 3 * x, drawn(layer, nodes, A))
  apply = jax.jit(layer.apply)
  got = np.asarray(apply(variables, nodes, A))
  want = _attention_loop(variables["params"], nodes, A)
  np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)
  assert got.shape == (6, 5) and (got > 0).any()
  np.testing.assert_array_equal(got[2], np.zeros(5))

  # With 40 times the weights, exp of the attention logits would overflow.
  large = jax.tree.map(lambda x: 40 * x, variables)
  assert np.isfinite(apply(large, nodes, A)).all()


def test_protogr_agrees_with_the_equations():
  nodes, model = _nodes(), ProtoGR(num_classes=3, threshold=0.2)
  variables = drawn(model, nodes, VALID)
  got = jax.jit(model.apply)(variables, nodes, VALID)
  params = variables["params"]
  A, valid = _affinity_loop(nodes, VALID, 0.2), VALID[:, None]
  x = _attention_loop(params["attention_1"], nodes * valid, A)
  x = _attention_loop(params["attention_2"], x, A) + nodes * valid
  want = x @ params["head"]["kernel"] + params["head"]["bias"]
  assert got.shape == (6, 3)
  np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_protogr_gradients():
  nodes, valid = _nodes()[[0, 1, 3, 5]], np.array([1, 1, 1, 0], bool)
  model = ProtoGR(num_classes=2)
  variables = drawn(model, nodes, valid)
  f = lambda variables, nodes: model.apply(variables, nodes, valid)
  check_grads(
    jax.jit(f), (variables, nodes), order=1, atol=2e-2, rtol=2e-2, eps=1e-3
  )


@functools.partial(jax.jit, static_argnums=0)
def _valid_sum_and_grads(model, variables, nodes, valid):
  def loss(variables, nodes):
    logits = model.apply(variables, nodes, valid)
    return jnp.where(valid[:, None], logits, 0.0).sum()

  return jax.value_and_grad(loss, (0, 1))(variables, nodes)


@pytest.mark.parametrize("valid", [np.zeros(6, bool), VALID])
def test_unseen_nodes_give_finite_values_and_no_gradient(valid):
  nodes = np.where(valid[:, None], _nodes(), 0)
  model = ProtoGR(num_classes=3)
  variables = drawn(model, nodes, valid)
  value, grads = _valid_sum_and_grads(model, variables, nodes, valid)
  assert np.isfinite(value)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(grads))
  np.testing.assert_array_equal(grads[1][~valid], np.zeros((sum(~valid), 4)))
