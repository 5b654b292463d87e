"""The amplitude mix against numpy's full Fourier transform."""

import jax
import numpy as np
import pytest

from comen_jax.data import spectrum

amplitude_mix = jax.jit(spectrum.amplitude_mix)


def _pixels(seed, shape=(3, 6, 6, 3)):
  pixels = np.random.default_rng(seed).uniform(0.3, 0.7, shape)
  return pixels.astype(np.float32)


def _plain(pixels, partners, part):
  """The equation, image by image and channel by channel, in float64."""
  result = np.zeros(pixels.shape)
  for i, c in np.ndindex(len(pixels), pixels.shape[-1]):
    own = np.fft.fft2(pixels[i, ..., c].astype(np.float64))
    other = np.fft.fft2(partners[i, ..., c].astype(np.float64))
    amplitude = (1 - part[i]) * np.abs(own) + part[i] * np.abs(other)
    result[i, ..., c] = np.fft.ifft2(
      amplitude * np.exp(1j * np.angle(own))
    ).real
  return np.clip(result, 0, 1)


@pytest.mark.parametrize("side", [6, 5])
def test_it_is_the_equation_over_the_whole_spectrum(side):
  shape = (3, side, side, 3)
  pixels, partners = _pixels(0, shape), _pixels(1, shape)
  part = np.float32([0.1, 0.5, 1.0])
  got = amplitude_mix(pixels, partners, part)
  np.testing.assert_allclose(got, _plain(pixels, partners, part), atol=1e-6)


def test_a_part_of_0_changes_no_bit():
  pixels = _pixels(0)
  got = amplitude_mix(pixels, _pixels(1), np.zeros(3, np.float32))
  np.testing.assert_array_equal(got, pixels)


def test_a_part_of_1_gives_the_partner_its_amplitude_and_keeps_the_phase():
  # Partners that differ little, so that nothing is cut to [0, 1].
  pixels = _pixels(0)
  partners = (pixels + 0.02 * (_pixels(1) - 0.5)).astype(np.float32)
  got = amplitude_mix(pixels, partners, np.ones(3, np.float32))
  found, own, other = (
    np.fft.fft2(x, axes=(1, 2)) for x in (got, pixels, partners)
  )
  np.testing.assert_allclose(np.abs(found), np.abs(other), atol=2e-4)
  turned = found * np.conj(own)
  np.testing.assert_allclose(turned.imag, 0, atol=2e-3)


def test_an_image_without_amplitude_stays_finite():
  black = np.zeros((1, 4, 4, 3), np.float32)
  white = np.ones((1, 4, 4, 3), np.float32)
  got = amplitude_mix(black, white, np.float32([0.25]))
  # White has a mean and nothing else.
  np.testing.assert_allclose(got, np.full_like(black, 0.25), atol=1e-6)


def test_random_mixes_are_of_the_batch_and_depend_on_the_key():
  pixels = _pixels(0, (4, 4, 4, 3))
  mix = jax.jit(spectrum.random_amplitude_mix, static_argnums=2)
  got = mix(jax.random.key(0), pixels, 1.0)
  assert got.shape == pixels.shape
  assert got.min() >= 0 and got.max() <= 1
  assert np.abs(got - mix(jax.random.key(1), pixels, 1.0)).max() > 0.01
  # An image alone in its batch is its own partner.
  one = spectrum.random_amplitude_mix(jax.random.key(0), pixels[:1], 1.0)
  np.testing.assert_array_equal(one, pixels[:1])
