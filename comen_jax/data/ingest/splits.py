"""Draws a validation split where none is published."""

import collections
import hashlib
from collections.abc import Hashable, Sequence

import numpy as np

from comen_jax.data.dataset import TRAIN, VAL

_SEED = 2022


def draw(
  groups: Sequence[Hashable],
  names: Sequence[str],
  checksums: Sequence[str],
  share: float,
) -> np.ndarray:
  """Draws `share` of each group for validation.

  Images are ranked by a hash of their bytes, so the draw does not depend on
  file names. A group of two or more images gives at least one to each split.

  Args:
    groups: group of each image, such as (domain, class).
    names: names of the images; they order images with equal bytes.
    checksums: checksums of the images' bytes.
    share: share of validation images, between 0 and 1.

  Returns:
    uint8 [N], `TRAIN` or `VAL`.
  """
  members = collections.defaultdict(list)
  for row, group in enumerate(groups):
    text = f"{_SEED} {checksums[row]}"
    rank = hashlib.sha256(text.encode()).hexdigest()
    members[group].append((rank, names[row], row))
  splits = np.full(len(groups), TRAIN, np.uint8)
  for ranked in members.values():
    count = round(share * len(ranked))
    if len(ranked) > 1:
      count = min(max(count, 1), len(ranked) - 1)
    for _, _, row in sorted(ranked)[:count]:
      splits[row] = VAL
  return splits
