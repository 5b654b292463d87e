"""Train and val drawn where none is published: stratified, seeded."""

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
  """Splits uint8 [N]: `share` of each group, rounded, is `VAL`.

  Pictures are ranked by a hash of their bytes, so that the same pictures are
  drawn under whatever file names. A group of two or more gives at least one.

  Args:
    groups: what to stratify by, such as (domain, class).
    names: tell pictures of equal bytes apart.
    checksums: of the pictures' bytes.
    share: between 0 and 1.
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
