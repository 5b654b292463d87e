"""Random convolutions of images (RandConv: Xu et al., ICLR 2021).

They change colours and local texture, and keep the shapes that are larger than
the kernel.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

SIZES = (1, 3, 5, 7)  # Of the kernel.


def random_convolution(
  key: jax.Array,
  images: jax.Array,
  *,
  mix: bool = True,
  keep: float = 0.0,
  sizes: tuple[int, ...] = SIZES,
) -> jax.Array:
  """Applies one new random convolution to all images of a batch.

  Args:
    key: random key, fresh in each step.
    images: [B, H, W, C], normalised.
    mix: whether to return a conv(x) + (1 - a) x, with one a for the batch,
      uniform in [0, 1], in place of conv(x).
    keep: probability that the whole batch stays as it is.
    sizes: odd sizes of the kernel, each equally probable.

  Returns:
    [B, H, W, C].
  """
  kernel_key, mix_key, keep_key = jax.random.split(key, 3)
  kernel = random_kernel(kernel_key, images.shape[-1], sizes)
  changed = convolve(images, kernel)
  if mix:
    part = jax.random.uniform(mix_key)
    changed = part * changed + (1 - part) * images
  if keep:
    kept = jax.random.bernoulli(keep_key, keep)
    changed = jnp.where(kept, images, changed)
  return changed


def random_kernel(
  key: jax.Array, channels: int, sizes: tuple[int, ...] = SIZES
) -> jax.Array:
  """Draws a kernel of random size k, its weights from N(0, 1 / (C k^2)).

  Returns:
    [largest, largest, C, C], 0 outside the k x k weights in its centre. So the
    shape is the same whatever k is, and a step is compiled once.
  """
  if not sizes or any(size < 1 or size % 2 == 0 for size in sizes):
    raise ValueError(f"sizes={sizes}: give odd sizes of a kernel")
  size_key, weight_key = jax.random.split(key)
  largest = max(sizes)
  size = jax.random.choice(size_key, np.array(sizes, np.int32))
  distance = np.abs(np.arange(largest) - largest // 2)
  inside = distance <= size // 2
  square = (inside[:, None] & inside[None, :])[:, :, None, None]
  weights = jax.random.normal(
    weight_key, (largest, largest, channels, channels)
  )
  scale = 1 / jnp.sqrt(channels * size.astype(jnp.float32) ** 2)
  return jnp.where(square, scale * weights, 0.0)


def convolve(images: jax.Array, kernel: jax.Array) -> jax.Array:
  """Convolves images [B, H, W, C] with a kernel [k, k, C, D], zero-padded.

  Returns:
    [B, H, W, D].
  """
  chex.assert_rank([images, kernel], 4)
  # On CPU, XLA's takes eight times as long: three channels fill no vector.
  return jax.lax.platform_dependent(
    images, kernel, cpu=_by_fourier, default=_by_xla
  )


def _by_xla(images: jax.Array, kernel: jax.Array) -> jax.Array:
  return jax.lax.conv_general_dilated(
    images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
  )


def _by_fourier(images: jax.Array, kernel: jax.Array) -> jax.Array:
  """Multiplies the Fourier transforms of padded images and kernel."""
  _, H, W, C = images.shape
  k = kernel.shape[0]
  size = (H + k - 1, W + k - 1)
  planes = jnp.fft.rfft2(jnp.moveaxis(images, 3, 1), s=size)
  # The kernel is mirrored: networks "convolve" without mirroring.
  weights = jnp.moveaxis(kernel[::-1, ::-1], (0, 1), (2, 3))
  weights = jnp.fft.rfft2(weights, s=size)
  mixed = sum(planes[:, c, None] * weights[c][None] for c in range(C))
  start = k // 2
  mixed = jnp.fft.irfft2(mixed, s=size)[
    :, :, start : start + H, start : start + W
  ]
  return jnp.moveaxis(mixed, 1, 3)
