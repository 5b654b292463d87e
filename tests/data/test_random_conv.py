"""Random convolutions: their kernels, against plain loops, and their draws."""

import jax
import numpy as np
import pytest

from comen_jax.data import random_conv

random_kernel = jax.jit(random_conv.random_kernel, static_argnums=(1, 2))
KEYS = jax.random.split(jax.random.key(0), 400)


def _images(count=2, side=5):
  images = np.random.default_rng(0).normal(size=(count, side, side, 3))
  return images.astype(np.float32)


@pytest.mark.parametrize("convolve", ["convolve", "_by_xla"])
def test_convolution_equals_plain_loops(convolve):
  """On a CPU `convolve` goes by Fourier, elsewhere by XLA."""
  images = _images()[:, :4]
  kernel = np.random.default_rng(1).normal(size=(3, 3, 3, 2))
  padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
  want = np.zeros((*images.shape[:3], 2))
  for b, y, x in np.ndindex(images.shape[:3]):
    window = padded[b, y : y + 3, x : x + 3]
    want[b, y, x] = np.einsum("hwc,hwcd->d", window, kernel)
  got = getattr(random_conv, convolve)(images, kernel.astype(np.float32))
  np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_kernels_have_each_size_and_the_deviation_of_that_size():
  kernels = np.asarray(jax.vmap(lambda k: random_kernel(k, 3))(KEYS))
  reach = np.abs(np.arange(7) - 3)
  used = (kernels != 0).any(axis=(2, 3, 4))  # [400, 7], rows of the kernel.
  sizes = 2 * (used * reach).max(axis=1) + 1
  assert set(sizes) == {1, 3, 5, 7}
  assert min(np.bincount(sizes)[[1, 3, 5, 7]]) > 70  # 100 are expected.
  for size in (1, 3, 5, 7):
    half = size // 2
    ones = kernels[sizes == size]
    centre = ones[:, 3 - half : 4 + half, 3 - half : 4 + half]
    assert np.count_nonzero(ones) == np.count_nonzero(centre) == centre.size
    assert centre.std() == pytest.approx((3 * size**2) ** -0.5, rel=0.1)


def test_a_kernel_of_size_1_mixes_channels_only():
  kernel = random_kernel(KEYS[0], 3, (1,))
  assert kernel.shape == (1, 1, 3, 3)
  images = _images()
  got = random_conv.random_convolution(KEYS[0], images, mix=False, sizes=(1,))
  # Each pixel is the same linear map of its own channels.
  matrix = np.linalg.lstsq(images.reshape(-1, 3), got.reshape(-1, 3))[0]
  np.testing.assert_allclose(images @ matrix, got, rtol=1e-4, atol=1e-5)


def test_draws_differ_and_mixing_is_between_image_and_convolution():
  images = _images()
  plain, mixed = (
    jax.jit(
      lambda key, mix=mix: random_conv.random_convolution(key, images, mix=mix)
    )
    for mix in (False, True)
  )
  a, b = plain(KEYS[0]), plain(KEYS[1])
  assert np.abs(a - b).max() > 0.1
  part = (mixed(KEYS[0]) - images) / (a - images)
  assert part.min() > 0 and part.max() < 1
  np.testing.assert_allclose(part, part.mean(), rtol=1e-2)


def test_a_batch_is_kept_with_its_probability():
  images = _images(1, 3)
  draw = jax.jit(
    jax.vmap(
      lambda key: random_conv.random_convolution(
        key, images, mix=False, keep=0.5
      )
    )
  )
  kept = (np.asarray(draw(KEYS)) == images).all(axis=(1, 2, 3, 4))
  assert 0.4 < kept.mean() < 0.6


@pytest.mark.parametrize("sizes", [(), (2,), (0,)])
def test_sizes_are_odd(sizes):
  with pytest.raises(ValueError, match="odd"):
    random_conv.random_kernel(KEYS[0], 3, sizes)
