"""Mini digits: ten classes in four domains, made in seconds, no download.

A small stand-in for Digits-DG (MNIST, MNIST-M, SVHN, SYN), built from what
scikit-learn and matplotlib carry with them:

  written: real handwritten digits, white on black, grey.
  pasted: other handwritten digits blended with real photographs.
  street: house numbers in blurred, dull, tilted type, neighbours cut off.
  printed: clean type in vivid colours.

Nothing that tells pictures apart is shared: a handwritten glyph belongs to one
domain and one split, the type families of `street` and `printed` differ, and
the photographs' train and val parts do not overlap. The names of the pictures
say where each came from.
"""

import itertools
from typing import NamedTuple

import numpy as np

from comen_jax.data import glyphs, lettering

DOMAINS = ("written", "pasted", "street", "printed")
CLASSES = tuple("0123456789")
SPLITS = ("train", "val")
DEFAULT_TARGET = "pasted"
VERSION = "1"  # Bumped when the pictures change.
# Pictures of each class in each domain.
COUNTS = {"train": 150, "val": 20}

_SEED = 2022


class Pictures(NamedTuple):
  """N pictures, ordered by domain, split, class.

  Attributes:
    images: uint8 [N, 32, 32, 3].
    labels: int32 [N], index in CLASSES.
    domains: int32 [N], index in DOMAINS.
    splits: uint8 [N], 0 for train, 1 for val.
    names: N unique "<domain>/<train|val>/<class>/<provenance>.png".
  """

  images: np.ndarray
  labels: np.ndarray
  domains: np.ndarray
  splits: np.ndarray
  names: list[str]


def generate() -> Pictures:
  """Makes all pictures; the same bytes at every call."""
  images, rows, names = [], [], []
  for d, s, label in itertools.product(
    range(len(DOMAINS)), range(len(SPLITS)), range(len(CLASSES))
  ):
    domain, split = DOMAINS[d], SPLITS[s]
    for index in range(COUNTS[split]):
      # A stream of its own, so that no picture depends on another's draws.
      rng = np.random.default_rng([_SEED, d, s, label, index])
      image, provenance = _picture(domain, split, label, index, rng)
      images.append(image)
      rows.append((label, d, s))
      names.append(f"{domain}/{split}/{CLASSES[label]}/{provenance}.png")
  labels, domains, splits = np.array(rows, np.int32).T
  return Pictures(
    images=np.stack(images),
    labels=np.ascontiguousarray(labels),
    domains=np.ascontiguousarray(domains),
    splits=splits.astype(np.uint8),
    names=names,
  )


def _picture(
  domain: str, split: str, label: int, index: int, rng: np.random.Generator
) -> tuple[np.ndarray, str]:
  """One picture, uint8 [32, 32, 3], and where it comes from."""
  if domain in lettering.FONTS:
    fonts = lettering.FONTS[domain]
    font = fonts[index % len(fonts)]
    set_in_type = {"street": lettering.street, "printed": lettering.printed}
    return set_in_type[domain](label, font, rng), f"{font}-{index:03d}"

  ids = glyphs.allot(label, COUNTS["val"])[domain, split]
  glyph = ids[index % len(ids)]
  varied = split == "train"
  grey = glyphs.varied(glyph, rng) if varied else glyphs.plain(glyph)
  if domain == "written":
    return np.stack([grey] * 3, axis=-1), f"glyph{glyph:04d}-{index:03d}"
  photo, x, y = glyphs.choose_crop(split, rng)
  provenance = f"glyph{glyph:04d}-{photo}-x{x:03d}-y{y:03d}-{index:03d}"
  return glyphs.paste(grey, photo, x, y), provenance
