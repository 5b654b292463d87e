"""Augmentation recipes by name, and as a config gives them."""

import math

import pytest
from ml_collections import ConfigDict

from comen_jax.data.recipes import RECIPES, Recipe, get_recipe
from comen_jax.errors import UserError


def test_published_recipes_are_pinned():
  recipe = {"crop_scale": (0.8, 1.0), "flip": 0.5, "jitter": 0.4, "hue": 0.4}
  assert Recipe(**recipe) == RECIPES["mmld"]
  assert Recipe(**recipe, grayscale=0.1) == RECIPES["jigen"]
  assert Recipe() == RECIPES["none"] == RECIPES["digits"]
  assert Recipe() == (None, 0, 0, 0, 0, 0, 0)
  assert Recipe(amplitude=0.5) == RECIPES["amplitude"]
  assert Recipe(convolution=1.0) == RECIPES["randconv"]


@pytest.mark.parametrize("kind", [dict, ConfigDict])
def test_a_mapping_sets_some_fields(kind):
  assert get_recipe(kind({"flip": 1.0})) == Recipe(flip=1.0)


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
    ({"convolution": 2.0}, r"augment.convolution=2.0: give a probability"),
  ],
)
def test_the_error_for_a_bad_value_says_what_to_give(augment, message):
  with pytest.raises(UserError, match=message) as error:
    get_recipe(augment)
  assert "\n" not in str(error.value)
