"""Draws all images of mini digits."""

import itertools
from typing import NamedTuple

import numpy as np

from comen_jax.data.mini_digits import (
  CLASSES,
  COUNTS,
  DOMAINS,
  SPLITS,
  glyphs,
  lettering,
)

_SEED = 2022


class Pictures(NamedTuple):
  """N images, ordered by domain, split and class.

  Attributes:
    images: uint8 [N, 32, 32, 3].
    labels: int32 [N], indices in CLASSES.
    domains: int32 [N], indices in DOMAINS.
    splits: uint8 [N], 0 for train, 1 for val.
    names: N unique names, "<domain>/<train|val>/<class>/<provenance>.png".
  """

  images: np.ndarray
  labels: np.ndarray
  domains: np.ndarray
  splits: np.ndarray
  names: list[str]


def generate() -> Pictures:
  """Draws all images; every call gives the same bytes."""
  images, rows, names = [], [], []
  for d, s, label in itertools.product(
    range(len(DOMAINS)), range(len(SPLITS)), range(len(CLASSES))
  ):
    domain, split = DOMAINS[d], SPLITS[s]
    for index in range(COUNTS[split]):
      # Each image has its own stream, so none depends on another's draws.
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
  """Draws one image, uint8 [32, 32, 3], and says where it comes from."""
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
