"""Style-induced domain-specific normalisation (SDNorm)."""

import functools

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.nn.moments import affine, image_moments

_dot = functools.partial(jnp.dot, precision=jax.lax.Precision.HIGHEST)


class SDNorm(nn.Module):
  """Batch normalisation with one set of statistics per latent domain.

  It computes `y_i = sum_m p_im (scale_m * zhat_im + bias_m)` (Eq. 4, 5), where
  `zhat_im` is image i normalised with the statistics of domain m. Image j has
  the weight `w_jm = p_jm / sum_i p_im` in those statistics. The result is one
  affine map per image, so M costs nothing: no array is M times as large as z.

  A domain with fewer than `min_mass` images in the batch has no useful batch
  statistics. It then normalises with its running statistics and does not update
  them. With one domain this rule is off, and SDNorm equals BatchNorm.

  With few images per domain, batch statistics are noisy. With `prior_mass` the
  running statistics count as that many further images of every domain, without
  gradient. Running statistics are always updated with those of the batch.

  Attributes:
    num_domains: number of latent domains M.
    momentum: decay of the running statistics, as in nn.BatchNorm (1 - torch's).
    epsilon: constant added to the variance.
    per_domain_affine: whether `scale` and `bias` are [M, C] or shared, [C].
    min_mass: smallest sum of p, in images, that gives batch statistics.
    prior_mass: number of images that the running statistics count for.
    dtype: dtype of the output, by default that of z. Statistics are float32.
  """

  num_domains: int
  momentum: float = 0.9
  epsilon: float = 1e-5
  per_domain_affine: bool = True
  min_mass: float = 2.0
  prior_mass: float = 0.0
  dtype: jnp.dtype | None = None

  @nn.compact
  def __call__(
    self, z: jax.Array, domain_probs: jax.Array, use_running_average: bool
  ) -> jax.Array:
    """Normalises z.

    Args:
      z: [B, ..., C].
      domain_probs: [B, M], probabilities p of the latent domains.
      use_running_average: whether to normalise with the running statistics
        and leave them unchanged, as in evaluation.

    Returns:
      [B, ..., C].
    """
    chex.assert_shape(z, (None, ..., None))
    chex.assert_shape(domain_probs, (z.shape[0], self.num_domains))
    M, C = self.num_domains, z.shape[-1]
    shape = (M, C) if self.per_domain_affine else (C,)
    scale = self.param("scale", nn.initializers.ones, shape, jnp.float32)
    bias = self.param("bias", nn.initializers.zeros, shape, jnp.float32)
    if not self.per_domain_affine:
      scale, bias = jnp.tile(scale, (M, 1)), jnp.tile(bias, (M, 1))
    stats = "batch_stats"
    running_mean = self.variable(stats, "mean", jnp.zeros, (M, C), jnp.float32)
    running_var = self.variable(stats, "var", jnp.ones, (M, C), jnp.float32)

    dtype = self.dtype or z.dtype
    p = domain_probs.astype(jnp.float32)
    mean = jax.lax.stop_gradient(running_mean.value)
    var = jax.lax.stop_gradient(running_var.value)
    if use_running_average:
      center = mean.mean(axis=0, keepdims=True)
      own_center = center
    else:
      own_center, image_var = image_moments(z)
      enough, center, batch_mean, batch_var = self._batch_statistics(
        own_center, image_var, p
      )
      if not self.is_initializing():
        new_mean = self.momentum * mean + (1 - self.momentum) * batch_mean
        new_var = self.momentum * var + (1 - self.momentum) * batch_var
        running_mean.value = jnp.where(enough, new_mean, mean)
        running_var.value = jnp.where(enough, new_var, var)
      if self.prior_mass:
        batch_mean, batch_var = self._with_prior(
          p, batch_mean, batch_var, mean, var
        )
      mean = jnp.where(enough, batch_mean, mean)
      var = jnp.where(enough, batch_var, var)

    gain = scale * jax.lax.rsqrt(var + self.epsilon)
    # The value of y does not depend on the centers. They only keep large
    # offsets of z out of the sum a * z + b, where they would cancel.
    own_center = jax.lax.stop_gradient(own_center)
    a = _dot(p, gain)
    b = _dot(p, bias - (mean - center) * gain) + (own_center - center) * a
    return affine(z, a, b, own_center).astype(dtype)

  def _with_prior(
    self,
    p: jax.Array,
    batch_mean: jax.Array,
    batch_var: jax.Array,
    mean: jax.Array,
    var: jax.Array,
  ) -> tuple[jax.Array, jax.Array]:
    """Statistics of the batch and of `prior_mass` images, taken together.

    Args:
      p: [B, M].
      batch_mean: [M, C], mean of each domain in the batch.
      batch_var: [M, C], variance of each domain in the batch.
      mean: [M, C], running mean.
      var: [M, C], running variance.

    Returns:
      Mean and variance of each domain, 2 x [M, C].
    """
    mass = p.sum(axis=0)[:, None]
    share = mass / (mass + self.prior_mass)
    apart = jnp.square(batch_mean - mean)
    return (
      share * batch_mean + (1 - share) * mean,
      share * batch_var + (1 - share) * var + share * (1 - share) * apart,
    )

  def _batch_statistics(
    self, image_mean: jax.Array, image_var: jax.Array, p: jax.Array
  ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Computes the statistics of a batch.

    Args:
      image_mean: [B, C], mean of each image.
      image_var: [B, C], variance of each image.
      p: [B, M].

    Returns:
      Whether each domain has enough images [M, 1], the mean of all images
      [1, C] as a constant, mean and variance of each domain, 2 x [M, C].
    """
    mass = p.sum(axis=0)
    # Twelve times p = 1/6 may round to slightly less than two images.
    least = self.min_mass * (1 - 1e-5)
    enough = mass >= least if self.num_domains > 1 else mass > 0
    weights = p / jnp.where(enough, mass, 1.0)[None]

    # E[x^2] - E[x]^2 would be wrong by several per cent at offset 100 and std
    # 0.1, so we take moments about a center. It does not change the result.
    center = jax.lax.stop_gradient(image_mean.mean(axis=0, keepdims=True))
    deviation = image_mean - center
    mean = _dot(weights.T, deviation)
    square = _dot(weights.T, image_var + jnp.square(deviation))
    var = jnp.maximum(square - jnp.square(mean), 0.0)
    return enough[:, None], center, mean + center, var
