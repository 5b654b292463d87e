"""Drawn splits."""

import numpy as np
import pytest

from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest.splits import draw

N = 200
GROUPS = [(i % 3, i % 5) for i in range(N)]
NAMES = [f"{i}.png" for i in range(N)]
SUMS = [f"{i * 7919:064x}" for i in range(N)]


@pytest.mark.parametrize(
  ("size", "share", "want"),
  [(1, 0.1, 0), (2, 0.1, 1), (3, 0.1, 1), (10, 0.1, 1), (26, 0.1, 3),
   (237, 0.3, 71), (2, 0.9, 1), (123, 0.3, 37)],
)  # fmt: skip
def test_the_share_of_a_group_is_rounded(size, share, want):
  names = [str(i) for i in range(size)]
  got = draw([0] * size, names, names, share)
  assert (got == VAL).sum() == want
  assert (got == TRAIN).sum() == size - want


def test_every_group_gives_its_share():
  got = draw(GROUPS, NAMES, SUMS, 0.3)
  for group in set(GROUPS):
    members = np.array([g == group for g in GROUPS])
    assert got[members].sum() == round(0.3 * members.sum())


def test_the_order_and_names_of_images_do_not_matter():
  want = dict(zip(SUMS, draw(GROUPS, NAMES, SUMS, 0.3)))
  order = np.random.default_rng(0).permutation(N)
  pick = lambda values: [values[i] for i in order]
  got = draw(pick(GROUPS), NAMES, pick(SUMS), 0.3)
  assert dict(zip(pick(SUMS), got)) == want


def test_the_draw_does_not_follow_the_order():
  got = draw([0] * N, NAMES, SUMS, 0.5)
  assert 30 < got[: N // 2].sum() < 70


def test_images_with_equal_bytes_are_ordered_by_name():
  got = draw([0] * 10, [str(i) for i in range(10)], ["same"] * 10, 0.3)
  assert got.sum() == 3
