"""Prototypical graph reasoning (ProtoGR): attention over class prototypes."""

import functools

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

_HIGHEST = jax.lax.Precision.HIGHEST
_dot = functools.partial(jnp.dot, precision=_HIGHEST)
# Finite, so that a node without edges has no NaN gradient.
_NO_EDGE = -1e30


def centred(nodes: jax.Array, valid: jax.Array) -> jax.Array:
  """Subtracts the mean of the valid nodes: [N, D], [N] -> [N, D]."""
  weights = valid.astype(nodes.dtype)
  mean = _dot(weights, nodes) / jnp.maximum(weights.sum(), 1.0)
  return nodes - mean[None]


def affinity(
  nodes: jax.Array,
  valid: jax.Array,
  threshold: float = 0.5,
  centre: bool = False,
) -> jax.Array:
  """Computes the cosine similarities above a threshold (Eq. 8).

  The gradient flows through the similarities, not through the indicator.

  Args:
    nodes: [N, D], node features.
    valid: [N], whether a node exists; others have rows and columns of 0.
    threshold: value that the similarity of two neighbours exceeds.
    centre: whether to subtract the mean node first. Features that follow a
      ReLU all point the same way, so that without it all nodes are neighbours.

  Returns:
    [N, N]. The diagonal is 1 for every valid node, even for a zero vector.
  """
  chex.assert_rank(nodes, 2)
  chex.assert_shape(valid, (nodes.shape[0],))
  valid = valid.astype(bool)
  if centre:
    nodes = centred(nodes, valid)
  nodes = jnp.where(valid[:, None], nodes, 0.0)
  square = jnp.square(nodes).sum(axis=-1, keepdims=True)
  unit = nodes / jnp.sqrt(jnp.maximum(square, 1e-12))
  cosine = _dot(unit, unit.T)
  edges = jnp.where(cosine > threshold, cosine, 0.0)
  edges = jnp.where(jnp.eye(nodes.shape[0], dtype=bool), 1.0, edges)
  return jnp.where(valid[:, None] & valid[None, :], edges, 0.0)


class GraphAttention(nn.Module):
  """Applies one head of graph attention and a ReLU (Eq. 9, 10).

  The affinity is added to the logits, since `A exp(e) = exp(e + log A)`. Only a
  positive affinity is an edge. The output of a node without edges is 0.

  Attributes:
    features: width F of the output.
  """

  features: int

  @nn.compact
  def __call__(self, nodes: jax.Array, affinity: jax.Array) -> jax.Array:
    """Maps nodes [N, D] and affinity [N, N] to [N, F]."""
    chex.assert_rank(nodes, 2)
    chex.assert_shape(affinity, (nodes.shape[0],) * 2)
    glorot, F = nn.initializers.glorot_uniform(), self.features
    kernel = self.param("kernel", glorot, (nodes.shape[1], F), jnp.float32)
    attention = self.param("attention", glorot, (2 * F, 1), jnp.float32)
    hidden = _dot(nodes, kernel)
    # a^T [W x_i || W x_j] is a term of node i plus a term of node j.
    receiver, sender = _dot(hidden, attention[:F]), _dot(hidden, attention[F:])
    logits = nn.leaky_relu(receiver + sender.T, negative_slope=0.2)
    edge = affinity > 0
    logits = logits + jnp.log(jnp.where(edge, affinity, 1.0))
    alpha = jax.nn.softmax(jnp.where(edge, logits, _NO_EDGE), axis=-1)
    return nn.relu(_dot(jnp.where(edge, alpha, 0.0), hidden))


class ProtoGR(nn.Module):
  """Classifies prototypes that exchange information along a graph.

  Two layers of graph attention, a residual connection (Eq. 11) and a linear
  classifier (Eq. 12). Both layers use the affinity of the input nodes.

  Attributes:
    num_classes: number of classes K.
    threshold: threshold of `affinity`.
    centre: whether `affinity` subtracts the mean node.
    shared: whether both layers have the same parameters, as Eq. 9 prints them.
  """

  num_classes: int
  threshold: float = 0.5
  centre: bool = False
  shared: bool = False

  @nn.compact
  def __call__(self, nodes: jax.Array, valid: jax.Array) -> jax.Array:
    """Maps nodes [N, D] and valid [N] to logits [N, K]."""
    edges = affinity(nodes, valid, self.threshold, self.centre)
    nodes = jnp.where(valid.astype(bool)[:, None], nodes, 0.0)
    first = GraphAttention(nodes.shape[1], name="attention_1")
    second = (
      first
      if self.shared
      else GraphAttention(nodes.shape[1], name="attention_2")
    )
    x = second(first(nodes, edges), edges)
    head = nn.Dense(self.num_classes, precision=_HIGHEST, name="head")
    return head(x + nodes)
