"""The style of an image, and F_d, which predicts latent domains from it."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.nn.moments import image_moments


def style_statistics(f: jax.Array, epsilon: float = 1e-5) -> jax.Array:
  """Computes channel-wise mean and std of a feature map (Eq. 1, 2), float32.

  Args:
    f: [B, H, W, C], feature map.
    epsilon: constant added to the variance, so that the gradient of a flat
      channel is finite.

  Returns:
    [B, 2C]: the C means, then the C standard deviations.
  """
  chex.assert_rank(f, 4)
  mean, variance = image_moments(f)
  return jnp.concatenate([mean, jnp.sqrt(variance + epsilon)], axis=-1)


class DomainPredictor(nn.Module):
  """Predicts logits of the latent domains from the style; the paper's F_d.

  `mean` and `std` [2C] in `batch_stats` standardise the style. They start at 0
  and 1. This module only reads them; a method sets them once it has measured
  the styles of the source images.

  Attributes:
    num_domains: number of latent domains M.
    hidden: width of the hidden layer.
  """

  num_domains: int
  hidden: int = 64

  @nn.compact
  def __call__(self, style: jax.Array) -> jax.Array:
    """Maps style [B, 2C] to logits [B, M]."""
    chex.assert_rank(style, 2)
    shape = (style.shape[-1],)
    mean = self.variable("batch_stats", "mean", jnp.zeros, shape, jnp.float32)
    std = self.variable("batch_stats", "std", jnp.ones, shape, jnp.float32)
    x = (style.astype(jnp.float32) - mean.value[None]) / std.value[None]
    highest = jax.lax.Precision.HIGHEST
    x = nn.relu(nn.Dense(self.hidden, precision=highest)(x))
    return nn.Dense(self.num_domains, precision=highest)(x)
