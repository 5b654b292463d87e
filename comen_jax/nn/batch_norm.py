"""Batch normalisation."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.nn.moments import affine, image_moments


class BatchNorm(nn.Module):
  """`nn.BatchNorm`, with fewer passes over the feature map on CPU.

  Names and shapes of parameters and statistics are the same. The variance is
  that of the images plus that of their means. So it is also right for maps
  whose mean is much larger than their deviation.

  Attributes:
    momentum: decay of the running statistics (1 - torch's).
    epsilon: constant added to the variance.
    dtype: dtype of the output, by default that of z. Statistics are float32.
  """

  momentum: float = 0.9
  epsilon: float = 1e-5
  dtype: jnp.dtype | None = None

  @nn.compact
  def __call__(self, z: jax.Array, use_running_average: bool) -> jax.Array:
    """Maps z [B, ..., C] to [B, ..., C]."""
    B, C = z.shape[0], z.shape[-1]
    scale = self.param("scale", nn.initializers.ones, (C,), jnp.float32)
    bias = self.param("bias", nn.initializers.zeros, (C,), jnp.float32)
    stats = "batch_stats"
    running_mean = self.variable(stats, "mean", jnp.zeros, (C,), jnp.float32)
    running_var = self.variable(stats, "var", jnp.ones, (C,), jnp.float32)

    if use_running_average:
      mean, var = running_mean.value, running_var.value
      center = mean[None]
    else:
      image_mean, image_var = image_moments(z)
      center = jax.lax.stop_gradient(image_mean)
      mean = image_mean.mean(axis=0)
      spread = jnp.square(image_mean - mean[None]).mean(axis=0)
      var = image_var.mean(axis=0) + spread
      if not self.is_initializing():
        decay = self.momentum
        running_mean.value = decay * running_mean.value + (1 - decay) * mean
        running_var.value = decay * running_var.value + (1 - decay) * var

    gain = scale * jax.lax.rsqrt(var + self.epsilon)
    # The value of y does not depend on the center. It only keeps large offsets
    # of z out of the sum a * z + b, where they would cancel.
    wide = lambda x: jnp.broadcast_to(x, (B, C))
    shift = bias[None] - (mean[None] - center) * gain[None]
    y = affine(z, wide(gain[None]), wide(shift), center)
    return y.astype(self.dtype or z.dtype)
