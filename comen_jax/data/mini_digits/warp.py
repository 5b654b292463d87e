"""Changes the perspective of small images, with Pillow."""

from collections.abc import Sequence

import numpy as np
from PIL import Image


def warp(
  image: Image.Image,
  side: int,
  *,
  zoom: float = 1.0,
  rotation: float = 0.0,
  shear: float = 0.0,
  shift: Sequence[float] = (0.0, 0.0),
  tilt: Sequence[float] = (0.0, 0.0),
) -> Image.Image:
  """Maps the centre of `image` to the centre of a new square image.

  Pixels are not averaged: to shrink an image, warp it first and then reduce it.

  Args:
    image: grey image; everything outside it is black.
    side: height and width of the result, in pixels.
    zoom: pixels of the result per pixel of `image`.
    rotation: angle in degrees.
    shear: horizontal shear, in pixels per pixel of height.
    shift: shift in x and y, in pixels of the result.
    tilt: tilt in x and y; 0.2 makes the near edge of the result about 1.5 times
      as long as the far edge, 0 keeps parallel lines parallel.

  Returns:
    A grey image of `side` x `side`.
  """
  angle = np.deg2rad(rotation)
  cos, sin = np.cos(angle), np.sin(angle)
  rotate = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
  slant = np.array([[zoom, zoom * shear, 0], [0, zoom, 0], [0, 0, 1]])
  vanish = np.eye(3)
  vanish[2, :2] = np.asarray(tilt) / (side / 2)
  forward = _move(shift) @ vanish @ rotate @ slant
  there = _move((side / 2, side / 2))
  back = _move((-image.width / 2, -image.height / 2))
  # Pillow wants the map from pixels of the result back to `image`.
  inverse = np.linalg.inv(there @ forward @ back)
  return image.transform(
    (side, side),
    Image.Transform.PERSPECTIVE,
    tuple((inverse / inverse[2, 2]).ravel()[:8]),
    resample=Image.Resampling.BICUBIC,
  )


def _move(shift: Sequence[float]) -> np.ndarray:
  return np.array([[1, 0, shift[0]], [0, 1, shift[1]], [0, 0, 1]])
