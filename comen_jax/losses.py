"""The losses of the paper; they return unreduced arrays."""

import chex
import jax
import jax.numpy as jnp
import optax

from comen_jax.nn.protogr import centred


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
  """Computes L_cls (Eq. 15) of each image.

  Args:
    logits: [B, K], class logits.
    labels: [B] int, true classes.

  Returns:
    [B].
  """
  chex.assert_rank(logits, 2)
  chex.assert_shape(labels, (logits.shape[0],))
  return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


def prediction_entropy(logits: jax.Array) -> jax.Array:
  """Computes L_d (Eq. 3) of each image, the entropy of softmax(logits).

  Args:
    logits: [B, M], domain logits.

  Returns:
    [B].
  """
  chex.assert_rank(logits, 2)
  log_p = jax.nn.log_softmax(logits)
  return -(jnp.exp(log_p) * log_p).sum(axis=-1)


def mean_prediction_entropy(
  logits: jax.Array, weights: jax.Array | None = None
) -> jax.Array:
  """Computes the entropy of the mean prediction.

  It measures how evenly the domains are used. Its exponential is the effective
  number of domains, from 1 (collapsed) to M.

  Args:
    logits: [B, M], domain logits.
    weights: [B], weights of the images; all are 1 if None.

  Returns:
    A scalar; 0 if all weights are 0.
  """
  chex.assert_rank(logits, 2)
  if weights is None:
    weights = jnp.ones(logits.shape[:1])
  chex.assert_shape(weights, logits.shape[:1])
  weights = weights.astype(jnp.float32)
  total = weights.sum()
  p = jnp.dot(
    weights / jnp.where(total > 0, total, 1.0),
    jax.nn.softmax(logits),
    precision=jax.lax.Precision.HIGHEST,
  )
  # The smallest normal number keeps the gradient of an unused domain finite.
  return -(p * jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny))).sum()


def node_classification(logits: jax.Array) -> jax.Array:
  """Computes L_ProtoGR (Eq. 12) of each node.

  Args:
    logits: [M*K, K], class logits; node m*K + k is a prototype of class k.

  Returns:
    [M*K].
  """
  chex.assert_rank(logits, 2)
  N, K = logits.shape
  if N % K:
    raise ValueError(
      f"{N} nodes are not a multiple of {K} classes: give M*K nodes"
    )
  return cross_entropy(logits, jnp.arange(N) % K)


def protoccl(
  prototypes: jax.Array,
  valid: jax.Array,
  temperature: float = 0.5,
  normalize: bool = True,
  centre: bool = False,
) -> jax.Array:
  """Computes L_ProtoCCL (Eq. 14) of each prototype.

  The positives of a prototype are the other prototypes of its class, its
  negatives are those of other classes. As the paper prints it, the denominator
  of a positive has that positive and the negatives, but no other positive.

  Args:
    prototypes: [M, K, D].
    valid: [M, K], whether the prototype exists.
    temperature: temperature tau.
    normalize: whether to scale prototypes to unit length first; the paper
      prints raw dot products.
    centre: whether to subtract the mean prototype before that.

  Returns:
    [M, K], 0 where the prototype is not valid or has no positive.
  """
  chex.assert_rank(prototypes, 3)
  chex.assert_shape(valid, prototypes.shape[:2])
  M, K, D = prototypes.shape
  valid = valid.astype(bool).reshape(-1)
  c = prototypes.reshape(M * K, D)
  if centre:
    c = centred(c, valid)
  c = jnp.where(valid[:, None], c, 0.0)
  if normalize:
    square = jnp.square(c).sum(axis=-1, keepdims=True)
    c = c / jnp.sqrt(jnp.maximum(square, 1e-12))
  similarity = jnp.dot(c, c.T, precision=jax.lax.Precision.HIGHEST)
  similarity = similarity / temperature

  label = jnp.arange(M * K) % K
  same = label[:, None] == label[None, :]
  both = valid[:, None] & valid[None, :]
  positive = both & same & ~jnp.eye(M * K, dtype=bool)
  # -log(e^s / (e^s + sum e^n)) = softplus(logsumexp(n) - s). The finite floor
  # makes both the loss and its gradient 0 where there are no negatives.
  negatives = jax.nn.logsumexp(
    jnp.where(both & ~same, similarity, -1e30), axis=-1, keepdims=True
  )
  pairs = jnp.where(positive, jax.nn.softplus(negatives - similarity), 0.0)
  count = jnp.maximum(positive.sum(axis=-1), 1).astype(pairs.dtype)
  return (pairs.sum(axis=-1) / count).reshape(M, K)


def masked_mean(values: jax.Array, mask: jax.Array) -> jax.Array:
  """Averages the values whose mask is not 0; returns 0 if there are none."""
  chex.assert_equal_shape([values, mask])
  mask = mask.astype(bool)
  count = jnp.maximum(mask.sum(), 1).astype(values.dtype)
  return jnp.where(mask, values, 0.0).sum() / count
