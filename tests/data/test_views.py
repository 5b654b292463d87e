"""Stored squares to what the network sees."""

import jax
import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from comen_jax.data.views import make_views
from comen_jax.errors import UserError

CONSTANTS = {
  "half": ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
  "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
}


def _images(size=4):
  rng = np.random.default_rng(0)
  images = rng.integers(0, 256, (3, size, size, 3), np.uint8)
  images[0], images[1] = 0, 255
  return images


@pytest.mark.parametrize("name", CONSTANTS)
def test_normalisations_agree_with_numpy(name):
  got = jax.jit(make_views(name, "none", 4).evaluate)(_images())
  mean, std = (np.array(c) for c in CONSTANTS[name])
  want = (_images() / 255 - mean) / std
  np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
  assert got.dtype == np.float32


def test_half_maps_black_to_minus_one_and_white_to_one():
  got = make_views("half", "none", 4).evaluate(_images())
  np.testing.assert_array_equal(got[0], -1)
  np.testing.assert_array_equal(got[1], 1)


@pytest.mark.parametrize("size", [4, 3])
def test_without_augmentation_training_sees_what_evaluation_sees(size):
  views = make_views("imagenet", "none", size)
  got = views.train(jax.random.key(0), _images())
  np.testing.assert_array_equal(got, views.evaluate(_images()))


# Smaller by a whole factor, by none, much smaller, and larger.
@pytest.mark.parametrize("size", [64, 112, 28, 160])
def test_resizing_is_close_to_pillows_bilinear(size):
  photo = load_sample_image("china.jpg")[100:228, 200:328]
  got = jax.jit(make_views("half", "none", size).evaluate)(photo[None])[0]
  got = np.asarray(got) * 0.5 + 0.5
  resized = Image.fromarray(photo).resize(
    (size, size), Image.Resampling.BILINEAR
  )
  error = np.abs(got - np.asarray(resized) / 255)
  assert error.mean() < 0.5 / 255  # What rounding to whole pixels leaves.
  assert error.max() < 2 / 255


def test_unknown_names_are_told_the_choices():
  with pytest.raises(UserError, match=r"normalise='caffe'.*half, imagenet"):
    make_views("caffe", "none", 4)
  with pytest.raises(UserError, match=r"augment='mixup'.*none"):
    make_views("half", "mixup", 4)
