"""Mixes the amplitude spectra of images (FACT: Xu et al., CVPR 2021).

The phase of an image's Fourier transform holds most of its shapes, the
amplitude most of its style. Pixels must be those before normalisation: else a
dark and a bright image have means of opposite sign, and the mean's sign counts
as phase.
"""

import chex
import jax
import jax.numpy as jnp


def random_amplitude_mix(
  key: jax.Array, pixels: jax.Array, strength: float, share: float = 1.0
) -> jax.Array:
  """Mixes each image with a random one of the batch.

  Args:
    key: random key, fresh in each step.
    pixels: [B, H, W, C] in [0, 1].
    strength: the partner's part lambda is uniform in [0, strength].
    share: probability that an image is mixed; else it stays as it is.

  Returns:
    [B, H, W, C] in [0, 1].
  """
  order_key, part_key, share_key = jax.random.split(key, 3)
  partner = jax.random.permutation(order_key, len(pixels))
  part = strength * jax.random.uniform(part_key, (len(pixels),))
  if share < 1:
    mixed = jax.random.bernoulli(share_key, share, (len(pixels),))
    part = jnp.where(mixed, part, 0.0)
  return amplitude_mix(pixels, pixels[partner], part)


def amplitude_mix(
  pixels: jax.Array, partners: jax.Array, part: jax.Array
) -> jax.Array:
  """Mixes the amplitudes of two images and keeps the phase of the first.

  F' = ((1 - lambda) |F| + lambda |G|) exp(i angle(F)), with F and G the Fourier
  transforms of each channel. An angle of F = 0 counts as 0.

  Args:
    pixels: [B, H, W, C] in [0, 1].
    partners: [B, H, W, C] in [0, 1].
    part: [B], lambda; 0 gives the images themselves, bit for bit.

  Returns:
    [B, H, W, C], cut to [0, 1].
  """
  chex.assert_rank(pixels, 4)
  chex.assert_equal_shape([pixels, partners])
  chex.assert_shape(part, pixels.shape[:1])
  # The transform of a real image has two equal halves: rfft2 computes one.
  own = jnp.fft.rfft2(pixels, axes=(1, 2))
  amplitude = jnp.abs(own)
  other = jnp.abs(jnp.fft.rfft2(partners, axes=(1, 2)))
  # F' = F + change exp(i angle(F)): only the change goes back through the
  # inverse transform, so that a change of 0 leaves every bit.
  change = part[:, None, None, None] * (other - amplitude)
  empty = amplitude == 0
  ratio = change / jnp.where(empty, 1.0, amplitude)
  real = jnp.where(empty, change, ratio * own.real)
  spectrum = jax.lax.complex(real, ratio * own.imag)
  added = jnp.fft.irfft2(spectrum, s=pixels.shape[1:3], axes=(1, 2))
  return jnp.clip(pixels + added, 0.0, 1.0)
