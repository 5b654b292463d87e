"""Colours of the classes can be told apart, and seen."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from comen_jax.report.plots import theme

THEMES = pytest.mark.parametrize("look", [theme.LIGHT, theme.DARK])


def linear(colour):
  value = np.array(to_rgb(colour))
  return np.where(
    value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4
  )


def oklab(rgb):
  """Coordinates in which equal distances look equally different."""
  cones = np.array(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ]
  )
  axes = np.array(
    [
      [0.2104542553, 0.7936177850, -0.0040720468],
      [1.9779984951, -2.4285922050, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.8086757660],
    ]
  )
  return axes @ np.cbrt(cones @ rgb)


def without_green_cones(rgb):
  """What deuteranopes see (Machado et al., 2009)."""
  seen = np.array(
    [
      [0.367322, 0.860646, -0.227968],
      [0.280085, 0.672501, 0.047413],
      [-0.011820, 0.042940, 0.968881],
    ]
  )
  return np.clip(seen @ rgb, 0, 1)


def least_distance(colours):
  places = map(oklab, colours)
  pairs = itertools.combinations(places, 2)
  return min(np.linalg.norm(a - b) for a, b in pairs)


@THEMES
def test_ten_classes_can_be_told_apart(look):
  colours = [linear(c) for c in look.classes]
  assert len(colours) == 10
  assert least_distance(colours) > 0.19
  assert least_distance(map(without_green_cones, colours)) > 0.09


@THEMES
def test_classes_can_be_seen_on_the_page(look):
  luminance = lambda c: linear(c) @ (0.2126, 0.7152, 0.0722) + 0.05
  ground = luminance(look.colours.background)
  for colour in look.classes:
    ratio = luminance(colour) / ground
    assert max(ratio, 1 / ratio) > 1.85, colour
