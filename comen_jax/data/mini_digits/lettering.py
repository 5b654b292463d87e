"""Draws digits in type: `street` (like SVHN) and `printed` (like SYN).

The fonts come with matplotlib. Of its 40 font files, only those listed here
draw the digits 0 to 9 as digits: cmsy10, cmex10 and LastResort show symbols
instead, the other STIX fonts have no digits, and cmmi10 has old-style digits,
whose 0 and 1 look like small letters.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from comen_jax.data.mini_digits import SIDE
from comen_jax.data.mini_digits.warp import warp

# The two domains share no family of type, and no designer.
FONTS = {
  "street": (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSans-BoldOblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "DejaVuSerif-BoldItalic",
  ),
  "printed": (
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralItalic",
    "STIXGeneralBolIta",
    "cmr10",
    "cmb10",
    "cmss10",
    "cmti10",
    "cmtt10",
  ),
}

_SCALE = 4  # Digits are drawn at 4 times the final size, then reduced.
_DIGIT_HEIGHT = 22 * _SCALE
_CANVAS = 64 * _SCALE
_LUMA = np.array([0.299, 0.587, 0.114])


def street(label: int, font: str, rng: np.random.Generator) -> np.ndarray:
  """Draws a blurred house number around a digit: uint8 [32, 32, 3]."""
  neighbours = [
    str(rng.integers(10)) if rng.random() < 0.75 else "" for _ in range(2)
  ]
  canvas = _draw(str(label), font, neighbours, gap=rng.uniform(0.06, 0.2))
  ink = warp(
    canvas,
    SIDE * _SCALE,
    zoom=rng.uniform(0.95, 1.25),
    rotation=rng.uniform(-8, 8),
    shear=rng.uniform(-0.15, 0.15),
    shift=rng.uniform(-1.5, 1.5, size=2) * _SCALE,
    tilt=rng.uniform(-0.15, 0.15, size=2),
  )
  ink = ink.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.1) * _SCALE))
  paper, paint = _muted_colours(rng)
  image = _blend(_reduce(ink), paper, paint)
  image *= 1 + rng.uniform(0, 0.2) * _ramp(rng)  # Uneven light.
  image += rng.normal(0, rng.uniform(2, 8), size=image.shape)
  return _to_bytes(image)


def printed(label: int, font: str, rng: np.random.Generator) -> np.ndarray:
  """Draws a clean digit on a plain or graded ground: uint8 [32, 32, 3]."""
  ink = warp(
    _draw(str(label), font),
    SIDE * _SCALE,
    zoom=rng.uniform(0.85, 1.15),
    rotation=rng.uniform(-10, 10),
    shift=rng.uniform(-2, 2, size=2) * _SCALE,
  )
  paper, paint = _vivid_colours(rng)
  graded = rng.random() < 0.5
  ground = paper + graded * rng.uniform(-35, 35, size=3) * _ramp(rng)
  return _to_bytes(_blend(_reduce(ink), ground, paint))


def _draw(
  digit: str,
  font_name: str,
  neighbours: Sequence[str] = ("", ""),
  gap: float = 0.0,
) -> Image.Image:
  """Draws white digits on black, with the ink of `digit` at the centre."""
  font = _font(font_name)
  canvas = Image.new("L", (_CANVAS, _CANVAS))
  draw = ImageDraw.Draw(canvas)
  left, top, right, bottom = font.getbbox(digit, anchor="ls")
  x = (_CANVAS - left - right) / 2
  y = (_CANVAS - top - bottom) / 2
  draw.text((x, y), digit, fill=255, font=font, anchor="ls")
  gap *= _DIGIT_HEIGHT
  # Gaps are measured between the ink, so a narrow 1 has near neighbours too.
  before, after = neighbours
  if before:
    ink_right = font.getbbox(before, anchor="ls")[2]
    start = x + left - gap - ink_right
    draw.text((start, y), before, fill=255, font=font, anchor="ls")
  if after:
    ink_left = font.getbbox(after, anchor="ls")[0]
    start = x + right + gap - ink_left
    draw.text((start, y), after, fill=255, font=font, anchor="ls")
  return canvas


@functools.cache
def _font(name: str) -> ImageFont.FreeTypeFont:
  """Loads the font at the size that makes its 0 _DIGIT_HEIGHT high."""
  path = Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf")
  # Not every build of Pillow has the other layout engine.
  load = functools.partial(
    ImageFont.truetype, path, layout_engine=ImageFont.Layout.BASIC
  )
  _, top, _, bottom = load(size=1000).getbbox("0", anchor="ls")
  return load(size=1000 * _DIGIT_HEIGHT / (bottom - top))


def _muted_colours(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
  """Draws dull colours of wall and paint, low in contrast: float [3] each."""
  contrast = rng.uniform(55, 130)
  dark = rng.uniform(25, 225 - contrast)
  tints = rng.uniform(-22, 22, size=(2, 3))
  tints -= (tints @ _LUMA)[:, None]  # Keeps the contrast.
  colours = np.array([[dark], [dark + contrast]]) + tints
  wall, paint = rng.permutation(colours)
  return wall, paint


def _vivid_colours(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
  """Draws two colours that differ clearly in brightness: float [3] each."""
  while True:
    paper, paint = rng.uniform(0, 255, size=(2, 3))
    if abs((paper - paint) @ _LUMA) > 90:
      return paper, paint


def _ramp(rng: np.random.Generator) -> np.ndarray:
  """Makes a slope from -1 to 1 in a random direction: [32, 32, 1]."""
  angle = rng.uniform(0, 2 * np.pi)
  axis = np.linspace(-1, 1, SIDE)
  ramp = np.cos(angle) * axis[None, :] + np.sin(angle) * axis[:, None]
  return (ramp / np.abs(ramp).max())[..., None]


def _reduce(ink: Image.Image) -> np.ndarray:
  """Computes the share of ink in each final pixel: float [32, 32, 1]."""
  return np.asarray(ink.reduce(_SCALE), np.float64)[..., None] / 255


def _blend(ink: np.ndarray, paper: np.ndarray, paint: np.ndarray) -> np.ndarray:
  return paper * (1 - ink) + paint * ink


def _to_bytes(image: np.ndarray) -> np.ndarray:
  return np.clip(np.rint(image), 0, 255).astype(np.uint8)
