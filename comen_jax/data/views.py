"""Stored uint8 squares to what the network sees, on the device."""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data.augment import RECIPES, augment_images, resize
from comen_jax.errors import UserError

# Per channel mean and std of pixels in [0, 1].
NORMALISATIONS = {
  "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
  "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


class Views(NamedTuple):
  """Both map uint8 [B, S, S, 3] to float32 [B, H, W, 3], H = image_size."""

  train: Callable[[jax.Array, jax.Array], jax.Array]  # (key, images)
  evaluate: Callable[[jax.Array], jax.Array]  # (images)


def make_views(
  normalise: str, augment: str | Mapping[str, Any], image_size: int
) -> Views:
  """Views as the config names them.

  Args:
    normalise: a key of `NORMALISATIONS`.
    augment: of the training view: a key of `RECIPES`, or a mapping of some of
      crop_scale, flip, jitter, hue, grayscale, as `augment_images` takes them;
      what is left out is not done.
    image_size: H; for evaluation the whole stored square is resized to it.
  """
  if normalise not in NORMALISATIONS:
    raise UserError(
      f"normalise={normalise!r}: choose one of {', '.join(NORMALISATIONS)}"
    )
  recipe = _recipe(augment)
  mean, std = (
    np.asarray(v, np.float32).reshape(1, 1, 1, 3)
    for v in NORMALISATIONS[normalise]
  )

  def train(key: jax.Array, images: jax.Array) -> jax.Array:
    pixels = images.astype(jnp.float32) / 255.0
    return (augment_images(key, pixels, image_size, **recipe) - mean) / std

  def evaluate(images: jax.Array) -> jax.Array:
    pixels = images.astype(jnp.float32) / 255.0
    return (resize(pixels, image_size) - mean) / std

  return Views(train, evaluate)


def _recipe(augment: str | Mapping[str, Any]) -> dict[str, Any]:
  """The values behind a name, or those given, checked."""
  names = ", ".join(RECIPES)
  if isinstance(augment, str):
    if augment not in RECIPES:
      raise UserError(f"augment={augment!r}: choose one of {names}")
    return RECIPES[augment]
  try:
    values = dict(augment)  # A ConfigDict is no Mapping, yet is one.
  except (TypeError, ValueError):
    raise UserError(
      f"augment={augment!r}: give a mapping, or one of {names}"
    ) from None
  for key, value in values.items():
    if key not in _RULES:
      raise UserError(
        f"augment.{key}={value!r}: no such key; there are {', '.join(_RULES)}"
      )
    holds, way_out = _RULES[key]
    if not holds(value):
      raise UserError(f"augment.{key}={value!r}: give {way_out}")
  return values


def _number(value: Any, low: float, high: float) -> bool:
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    return False
  return low <= value <= high and math.isfinite(value)


def _areas(value: Any) -> bool:
  return (
    isinstance(value, tuple | list)
    and len(value) == 2
    and all(_number(area, 0, 1) for area in value)
    and 0 < value[0] <= value[1]
  )


_RULES = {
  "crop_scale": (_areas, "two shares of area, 0 < least <= greatest <= 1"),
  "flip": (lambda v: _number(v, 0, 1), "a probability from 0 to 1"),
  "jitter": (lambda v: _number(v, 0, math.inf), "a number of 0 or more"),
  "hue": (lambda v: _number(v, 0, 0.5), "a part of a turn, from 0 to 0.5"),
  "grayscale": (lambda v: _number(v, 0, 1), "a probability from 0 to 1"),
}
