"""Augmentation recipes: the named ones, and those written out in a config."""

import math
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

from comen_jax.errors import UserError


class Recipe(NamedTuple):
  """How strongly training images are changed. The defaults change nothing.

  Attributes:
    crop_scale: smallest and largest share of an image's area in a crop; None
      keeps the whole image.
    flip: probability of a horizontal flip.
    jitter: largest distance of the factors of brightness, contrast and
      saturation from 1.
    hue: largest shift of the hue, in turns, at most 0.5.
    grayscale: probability of removing the colour.
    amplitude: probability of mixing the amplitude spectrum of an image with
      that of another image of the batch, as FACT does (`spectrum.py`).
    convolution: probability of mixing the images of a batch with a random
      convolution of them, as RandConv does (`random_conv.py`).
  """

  crop_scale: tuple[float, float] | None = None
  flip: float = 0.0
  jitter: float = 0.0
  hue: float = 0.0
  grayscale: float = 0.0
  amplitude: float = 0.0
  convolution: float = 0.0


RECIPES = {
  "none": Recipe(),
  # Digits-DG in KaiyangZhou/Dassl.pytorch, as in the paper: no augmentation.
  "digits": Recipe(),
  # FACT's mixture without its teacher: half of the images, since its loss is
  # the mean over images and mixtures.
  "amplitude": Recipe(amplitude=0.5),
  # RandConv's images without the agreement of three draws.
  "randconv": Recipe(convolution=1.0),
  # PACS and VLCS in fmcarlucci/JigenDG, data/data_helper.py. JiGen removes the
  # colour of each of nine tiles separately; without its puzzle, the image is
  # one tile.
  "jigen": Recipe(
    crop_scale=(0.8, 1.0), flip=0.5, jitter=0.4, hue=0.4, grayscale=0.1
  ),
  # PACS, VLCS and Office-Home in mil-tokyo/dg_mmld, dataloader/Dataset.py.
  "mmld": Recipe(crop_scale=(0.8, 1.0), flip=0.5, jitter=0.4, hue=0.4),
}


def get_recipe(augment: str | Mapping[str, Any]) -> Recipe:
  """Returns the recipe that the config key `augment` describes.

  Args:
    augment: a key of `RECIPES`, or a mapping of fields of `Recipe`; fields that
      are left out keep their defaults.
  """
  names = ", ".join(RECIPES)
  if isinstance(augment, str):
    if augment not in RECIPES:
      raise UserError(f"augment={augment!r}: choose one of {names}")
    return RECIPES[augment]
  try:
    values = dict(augment)  # A ConfigDict is not a Mapping, but converts.
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
  return Recipe(**values)


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


# Of each field: the check, and what to give instead.
_RULES = {
  "crop_scale": (_areas, "two shares of the area, 0 < least <= greatest <= 1"),
  "flip": (lambda v: _number(v, 0, 1), "a probability from 0 to 1"),
  "jitter": (lambda v: _number(v, 0, math.inf), "a number of 0 or more"),
  "hue": (lambda v: _number(v, 0, 0.5), "a part of a turn, from 0 to 0.5"),
  "grayscale": (lambda v: _number(v, 0, 1), "a probability from 0 to 1"),
  "amplitude": (lambda v: _number(v, 0, 1), "a probability from 0 to 1"),
  "convolution": (lambda v: _number(v, 0, 1), "a probability from 0 to 1"),
}
