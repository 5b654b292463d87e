"""The memory of prototypes: one mean feature per latent domain and class."""

import chex
import flax.struct
import jax
import jax.numpy as jnp


@flax.struct.dataclass
class Prototypes:
  """Prototypes of M latent domains and K classes; node m*K + k is cell (m, k).

  Attributes:
    values: [M, K, D] float32, 0 where not seen.
    seen: [M, K] bool.
  """

  values: jax.Array
  seen: jax.Array

  @classmethod
  def zeros(cls, M: int, K: int, D: int) -> "Prototypes":
    """Nothing seen yet."""
    return cls(values=jnp.zeros((M, K, D)), seen=jnp.zeros((M, K), bool))


def update(
  prototypes: Prototypes,
  features: jax.Array,
  labels: jax.Array,
  domains: jax.Array,
  decay: float = 0.7,
  weights: jax.Array | None = None,
) -> Prototypes:
  """Moves the prototypes towards those of a batch (Eq. 7).

  A prototype that was never seen becomes the batch's; one that is absent from
  the batch stays. The gradient flows through the batch's part only; who stores
  the result stops it there.

  Args:
    prototypes: the memory.
    features: [B, D].
    labels: [B] int.
    domains: [B] int; an image of domain -1 is ignored.
    decay: rho.
    weights: [B], of the images in their cell's mean; all 1 if None.

  Returns:
    The new memory.
  """
  M, K, D = prototypes.values.shape
  B = features.shape[0]
  if weights is None:
    weights = jnp.ones((B,))
  chex.assert_shape(features, (B, D))
  chex.assert_shape([labels, domains, weights], (B,))

  # The one-hot of -1 is all 0.
  domain, label = jax.nn.one_hot(domains, M), jax.nn.one_hot(labels, K)
  cells = (weights[:, None] * domain)[:, :, None] * label[:, None, :]
  cells = cells.reshape(B, M * K)
  # A matmul, because a scatter-add is not deterministic on GPU.
  total = jnp.dot(
    cells.T, features.astype(jnp.float32), precision=jax.lax.Precision.HIGHEST
  )
  count = cells.sum(axis=0)
  present = count > 0
  local = total / jnp.where(present, count, 1.0)[:, None]
  local, present = local.reshape(M, K, D), present.reshape(M, K)

  old = jax.lax.stop_gradient(prototypes.values)
  moved = decay * old + (1 - decay) * local
  new = jnp.where(prototypes.seen[..., None], moved, local)
  return Prototypes(
    values=jnp.where(present[..., None], new, old),
    seen=prototypes.seen | present,
  )


def from_features(
  features: jax.Array, labels: jax.Array, domains: jax.Array, M: int, K: int
) -> Prototypes:
  """The mean feature of every cell over all images (Eq. 6).

  Args:
    features: [N, D].
    labels: [N] int.
    domains: [N] int; an image of domain -1 is ignored.
    M: number of latent domains.
    K: number of classes.
  """
  nothing = Prototypes.zeros(M, K, features.shape[-1])
  return update(nothing, features, labels, domains)
