"""The style of an image, and F_d, which tells latent domains from it."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp


def style_statistics(f: jax.Array, epsilon: float = 1e-5) -> jax.Array:
  """Channel-wise mean and std of a feature map (Eq. 1, 2), in float32.

  Args:
    f: [B, H, W, C].
    epsilon: added to the variance, so that a flat channel has a gradient.

  Returns:
    [B, 2C]: the C means, then the C standard deviations.
  """
  chex.assert_rank(f, 4)
  f = f.astype(jnp.float32)
  mean = f.mean(axis=(1, 2), keepdims=True)
  variance = jnp.square(f - mean).mean(axis=(1, 2))
  return jnp.concatenate([mean[:, 0, 0], jnp.sqrt(variance + epsilon)], axis=-1)


class DomainPredictor(nn.Module):
  """F_d: logits of the latent domains from a standardised style.

  `mean` and `std` [2C] in `batch_stats` standardise the style. They are 0 and 1
  until whoever measures the styles of the sources sets them; this module only
  reads them.
  """

  num_domains: int
  hidden: int = 64

  @nn.compact
  def __call__(self, style: jax.Array) -> jax.Array:
    """style: [B, 2C] -> [B, M]."""
    chex.assert_rank(style, 2)
    shape = (style.shape[-1],)
    mean = self.variable("batch_stats", "mean", jnp.zeros, shape, jnp.float32)
    std = self.variable("batch_stats", "std", jnp.ones, shape, jnp.float32)
    x = (style.astype(jnp.float32) - mean.value[None]) / std.value[None]
    highest = jax.lax.Precision.HIGHEST
    x = nn.relu(nn.Dense(self.hidden, precision=highest)(x))
    return nn.Dense(self.num_domains, precision=highest)(x)
