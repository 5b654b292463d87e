"""Stored squares become the input of the network."""

import functools

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image
from sklearn.datasets import load_sample_image

from comen_jax.data.recipes import RECIPES, Recipe
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


@functools.cache
def _evaluated(normalise, size):
  """The evaluation view of `_images()`, compiled once for all tests."""
  return jax.jit(make_views(normalise, "none", size).evaluate)(_images())


@pytest.mark.parametrize("name", CONSTANTS)
def test_normalisations_agree_with_numpy(name):
  got = _evaluated(name, 4)
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
  train = jax.jit(make_views("imagenet", "none", size).train)
  got = train(jax.random.key(0), _images())
  np.testing.assert_array_equal(got, _evaluated("imagenet", size))


@pytest.mark.parametrize(
  "augment",
  [{}, "digits", {"flip": 0.0, "jitter": 0.0, "hue": 0.0, "grayscale": 0.0}],
)
def test_an_empty_augmentation_changes_nothing(augment):
  train = jax.jit(make_views("half", augment, 3).train)
  got = train(jax.random.key(0), _images())
  np.testing.assert_array_equal(got, _evaluated("half", 3))


@pytest.mark.parametrize("kind", [dict, ConfigDict])
def test_the_training_view_is_augmented_then_normalised(kind):
  train = jax.jit(make_views("imagenet", kind({"flip": 1.0}), 4).train)
  got = train(jax.random.key(0), _images())
  want = _evaluated("imagenet", 4)[:, :, ::-1]
  np.testing.assert_allclose(got, want, atol=1e-6)


def test_a_recipe_is_found_by_its_name(monkeypatch):
  monkeypatch.setitem(RECIPES, "mirror", Recipe(flip=1.0))
  named, literal = (
    jax.jit(make_views("half", augment, 4).train)(jax.random.key(0), _images())
    for augment in ("mirror", {"flip": 1.0})
  )
  np.testing.assert_array_equal(named, literal)


def test_random_convolutions_are_those_of_normalised_images():
  train = jax.jit(make_views("half", "randconv", 4).train)
  first, again, second = (
    train(jax.random.key(seed), _images()) for seed in (0, 0, 1)
  )
  # Black is -1 and white is 1: one linear map gives them opposite values.
  np.testing.assert_allclose(first[0], -first[1], atol=1e-5)
  assert np.abs(first - _evaluated("half", 4)).max() > 0.1
  np.testing.assert_array_equal(first, again)
  assert np.abs(first - second).max() > 0.1


def test_a_batch_is_convolved_with_its_probability_after_other_changes():
  recipe = {"flip": 1.0, "convolution": 0.25}
  train = jax.jit(jax.vmap(make_views("half", recipe, 4).train, (0, None)))
  keys = jax.random.split(jax.random.key(0), 400)
  mirrored = _evaluated("half", 4)[:, :, ::-1]
  same = np.isclose(train(keys, _images()), mirrored, atol=1e-6)
  assert 0.68 < same.all(axis=(1, 2, 3, 4)).mean() < 0.82


# Half, a fraction, much smaller, and larger.
@pytest.mark.parametrize("size", [64, 112, 28, 160])
def test_resizing_is_close_to_pillows_bilinear(size):
  photo = load_sample_image("china.jpg")[100:228, 200:328]
  got = jax.jit(make_views("half", "none", size).evaluate)(photo[None])[0]
  got = np.asarray(got) * 0.5 + 0.5
  resized = Image.fromarray(photo).resize(
    (size, size), Image.Resampling.BILINEAR
  )
  error = np.abs(got - np.asarray(resized) / 255)
  assert error.mean() < 0.5 / 255  # Rounding to whole levels.
  assert error.max() < 2 / 255


def test_errors_for_unknown_names_list_the_choices():
  with pytest.raises(UserError, match=r"normalise='caffe'.*half, imagenet"):
    make_views("caffe", "none", 4)
  with pytest.raises(UserError, match=r"augment='mixup'.*none.*jigen"):
    make_views("half", "mixup", 4)


@pytest.mark.parametrize("normalise", ["half", "imagenet"])
def test_pixels_and_normalise_undo_each_other(normalise):
  views = make_views(normalise, "none", 4)
  images = views.evaluate(_images())
  pixels = views.pixels(images)
  np.testing.assert_allclose(pixels, _images() / 255, atol=1e-6)
  np.testing.assert_allclose(views.normalise(pixels), images, atol=1e-5)
  assert views.pixels(images + 10).max() == 1  # Never beyond a picture's range.
