"""The prototypes: one mean feature per latent domain and class."""

import chex
import flax.struct
import jax
import jax.numpy as jnp


@flax.struct.dataclass
class Prototypes:
  """Holds the prototypes of M latent domains and K classes.

  Cell (m, k) is node m*K + k of the graph.

  Attributes:
    values: [M, K, D] float32, prototypes; 0 for a cell not seen yet.
    seen: [M, K] bool, whether any image belonged to the cell.
  """

  values: jax.Array
  seen: jax.Array

  @classmethod
  def zeros(cls, M: int, K: int, D: int) -> "Prototypes":
    """Creates a memory that has seen no image."""
    return cls(values=jnp.zeros((M, K, D)), seen=jnp.zeros((M, K), bool))


def update(
  prototypes: Prototypes,
  features: jax.Array,
  labels: jax.Array,
  domains: jax.Array,
  decay: float = 0.7,
  weights: jax.Array | None = None,
  straight_through: bool = False,
) -> Prototypes:
  """Moves the prototypes towards the mean features of a batch (Eq. 7).

  A cell seen for the first time takes the mean of the batch. A cell that is
  absent from the batch keeps its prototype. The gradient flows through the
  features of the batch only; the caller stops it before storing the result.

  Args:
    prototypes: memory before the batch.
    features: [B, D], features of the images.
    labels: [B] int, classes of the images.
    domains: [B] int, latent domains; images of domain -1 are ignored.
    decay: decay rho of the moving average.
    weights: [B], weights of the images in the means; all are 1 if None.
    straight_through: whether the gradient of a prototype is that of the
      batch's mean, not 1 - decay times as much. Values do not change.

  Returns:
    The memory after the batch.
  """
  M, K, D = prototypes.values.shape
  B = features.shape[0]
  if weights is None:
    weights = jnp.ones((B,))
  chex.assert_shape(features, (B, D))
  chex.assert_shape([labels, domains, weights], (B,))
  weights = weights.astype(jnp.float32)

  # A domain of -1 has a one-hot vector of zeros.
  domain, label = jax.nn.one_hot(domains, M), jax.nn.one_hot(labels, K)
  cells = (weights[:, None] * domain)[:, :, None] * label[:, None, :]
  cells = cells.reshape(B, M * K)
  # We use a matmul because a scatter-add is not deterministic on GPU.
  total = jnp.dot(
    cells.T, features.astype(jnp.float32), precision=jax.lax.Precision.HIGHEST
  )
  count = cells.sum(axis=0)
  present = count > 0
  local = total / jnp.where(present, count, 1.0)[:, None]
  local, present = local.reshape(M, K, D), present.reshape(M, K)

  old = jax.lax.stop_gradient(prototypes.values)
  moved = decay * old + (1 - decay) * local
  if straight_through:
    moved += decay * (local - jax.lax.stop_gradient(local))
  new = jnp.where(prototypes.seen[..., None], moved, local)
  return Prototypes(
    values=jnp.where(present[..., None], new, old),
    seen=prototypes.seen | present,
  )


def from_features(
  features: jax.Array, labels: jax.Array, domains: jax.Array, M: int, K: int
) -> Prototypes:
  """Computes the mean feature of every cell over all images (Eq. 6).

  Args:
    features: [N, D], features of the images.
    labels: [N] int, classes of the images.
    domains: [N] int, latent domains; images of domain -1 are ignored.
    M: number of latent domains.
    K: number of classes.
  """
  nothing = Prototypes.zeros(M, K, features.shape[-1])
  return update(nothing, features, labels, domains)
