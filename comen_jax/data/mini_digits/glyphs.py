"""Draws handwritten digits, alone or pasted on photographs as in MNIST-M.

Glyphs and photographs are real and come with scikit-learn: the test half of the
UCI "optical recognition of handwritten digits" (1797 glyphs of 8 x 8) and two
photographs of 427 x 640, china.jpg and flower.jpg.
"""

import functools

import numpy as np
from PIL import Image
from sklearn import datasets

from comen_jax.data.mini_digits import SIDE
from comen_jax.data.mini_digits.warp import warp

PHOTOS = ("china", "flower")
# Columns of the photographs for the crops of each split. On both sides of a
# border the photograph is about equally bright and busy: with only sky or only
# leaves, one split would be much easier than the other.
PHOTO_COLUMNS = {
  ("china", "train"): (160, 640),
  ("china", "val"): (0, 160),
  ("flower", "train"): (0, 320),
  ("flower", "val"): (320, 640),
}

_GLYPH_ZOOM = 3.25  # 8 pixels become 26 of 32; MNIST has about 20 of 28.
_SEED = 8


@functools.cache
def allot(label: int, val_count: int) -> dict[tuple[str, str], np.ndarray]:
  """Assigns each glyph of a class to one domain and one split.

  Args:
    label: the class.
    val_count: number of validation glyphs of each domain.

  Returns:
    Glyph ids, int [G], by ("written" | "pasted", "train" | "val"). G is
    `val_count` for val; the two train parts share the rest equally.
  """
  (ids,) = np.nonzero(datasets.load_digits().target == label)
  ids = np.random.default_rng([_SEED, label]).permutation(ids)
  train = ids[2 * val_count :]
  half = len(train) // 2
  return {
    ("written", "val"): ids[:val_count],
    ("pasted", "val"): ids[val_count : 2 * val_count],
    ("written", "train"): train[:half],
    ("pasted", "train"): train[half:],
  }


def plain(glyph: int) -> np.ndarray:
  """Enlarges the glyph, white on black: uint8 [32, 32]."""
  return _crisp(warp(_small_glyphs()[glyph], SIDE, zoom=_GLYPH_ZOOM))


def varied(glyph: int, rng: np.random.Generator) -> np.ndarray:
  """Enlarges the glyph with a small random affine change: uint8 [32, 32]."""
  return _crisp(
    warp(
      _small_glyphs()[glyph],
      SIDE,
      zoom=_GLYPH_ZOOM * rng.uniform(0.88, 1.1),
      rotation=rng.uniform(-12, 12),
      shear=rng.uniform(-0.15, 0.15),
      shift=rng.uniform(-2, 2, size=2),
    )
  )


def choose_crop(split: str, rng: np.random.Generator) -> tuple[str, int, int]:
  """Draws a photograph and the left and top of a 32 x 32 crop for a split."""
  photo = PHOTOS[rng.integers(len(PHOTOS))]
  height = len(photograph(photo))
  low, high = PHOTO_COLUMNS[photo, split]
  left = rng.integers(low, high - SIDE, endpoint=True)
  top = rng.integers(0, height - SIDE, endpoint=True)
  return photo, int(left), int(top)


def paste(glyph: np.ndarray, photo: str, left: int, top: int) -> np.ndarray:
  """Computes |crop - glyph| in each channel: uint8 [32, 32, 3]."""
  crop = photograph(photo)[top : top + SIDE, left : left + SIDE]
  return np.abs(crop.astype(np.int16) - glyph[..., None]).astype(np.uint8)


@functools.cache
def photograph(name: str) -> np.ndarray:
  """Loads one of PHOTOS: uint8 [427, 640, 3]."""
  return datasets.load_sample_image(f"{name}.jpg")


@functools.cache
def _small_glyphs() -> list[Image.Image]:
  """Loads the 1797 glyphs; a black frame lets them fade out smoothly."""
  grey = np.rint(datasets.load_digits().images * (255 / 16)).astype(np.uint8)
  return [Image.fromarray(g) for g in np.pad(grey, ((0, 0), (2, 2), (2, 2)))]


def _crisp(image: Image.Image) -> np.ndarray:
  """Sharpens an enlarged glyph: ink becomes white, paper black."""
  grey = np.asarray(image, np.float64)
  # Faint grey becomes black, which keeps the holes of 6, 8 and 9 open.
  return np.clip((grey - 60) * (255 / 155), 0, 255).astype(np.uint8)
