"""Stored squares to what the network sees."""

import math

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image
from sklearn.datasets import load_sample_image

from comen_jax.data.augment import RECIPES
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


@pytest.mark.parametrize(
  "augment",
  [{}, "digits", {"flip": 0.0, "jitter": 0.0, "hue": 0.0, "grayscale": 0.0}],
)
def test_empty_augmentation_is_none(augment):
  views = make_views("half", augment, 3)
  got = jax.jit(views.train)(jax.random.key(0), _images())
  np.testing.assert_array_equal(got, jax.jit(views.evaluate)(_images()))


@pytest.mark.parametrize("kind", [dict, ConfigDict])
def test_the_training_view_is_augmented_then_normalised(kind):
  views = make_views("imagenet", kind({"flip": 1.0}), 4)
  got = views.train(jax.random.key(0), _images())
  want = views.evaluate(_images()[:, :, ::-1])
  np.testing.assert_allclose(got, want, atol=1e-6)


def test_a_recipe_is_known_by_its_name(monkeypatch):
  monkeypatch.setitem(RECIPES, "mirror", {"flip": 1.0})
  named, literal = (
    make_views("half", augment, 4).train(jax.random.key(0), _images())
    for augment in ("mirror", {"flip": 1.0})
  )
  np.testing.assert_array_equal(named, literal)


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
  with pytest.raises(UserError, match=r"augment='mixup'.*none.*jigen"):
    make_views("half", "mixup", 4)


@pytest.mark.parametrize(
  ["augment", "message"],
  [
    (None, r"augment=None: give a mapping, or one of none, .*jigen"),
    (0.5, r"augment=0.5: give a mapping"),
    ([0.8, 1.0], r"augment=\[0.8, 1.0\]: give a mapping"),
    ({"flop": 0.5}, r"augment.flop=0.5: no such key.*crop_scale, flip, jit"),
    ({"crop_scale": (0.0, 1.0)}, r"augment.crop_scale=\(0.0, 1.0\).* <= 1"),
    ({"crop_scale": (0.5, 1.5)}, r"augment.crop_scale=\(0.5, 1.5\).* <= 1"),
    ({"crop_scale": (0.9, 0.8)}, r"augment.crop_scale=\(0.9, 0.8\)"),
    ({"crop_scale": (0.8,)}, r"augment.crop_scale=\(0.8,\): give two"),
    ({"crop_scale": 0.8}, r"augment.crop_scale=0.8: give two"),
    ({"flip": 1.5}, r"augment.flip=1.5: give a probability"),
    ({"flip": True}, r"augment.flip=True: give a probability"),
    ({"jitter": -0.1}, r"augment.jitter=-0.1: give a number of 0 or more"),
    ({"jitter": math.inf}, r"augment.jitter=inf"),
    ({"hue": 0.6}, r"augment.hue=0.6: .* from 0 to 0.5"),
    ({"hue": math.nan}, r"augment.hue=nan"),
    ({"grayscale": "0.1"}, r"augment.grayscale='0.1': give a probability"),
  ],
)
def test_bad_augmentation_is_told_the_way_out(augment, message):
  with pytest.raises(UserError, match=message) as error:
    make_views("half", augment, 4)
  assert "\n" not in str(error.value)
