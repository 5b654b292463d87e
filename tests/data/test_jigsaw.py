"""Tiles of a puzzle and their permutations."""

import numpy as np
import pytest

from comen_jax.data import jigsaw


def _images(side):
  return np.random.default_rng(0).normal(size=(2, side, side, 3))


@pytest.mark.parametrize("grid", [1, 2, 3])
def test_tiles_put_together_again_are_the_image(grid):
  images = _images(6)
  tiles = jigsaw.cut(images, grid)
  assert tiles.shape == (2, grid * grid, 6 // grid, 6 // grid, 3)
  np.testing.assert_array_equal(jigsaw.join(tiles, grid), images)


def test_tiles_are_numbered_row_by_row():
  images = _images(6)
  tiles = jigsaw.cut(images, 3)
  for row in range(3):
    for column in range(3):
      part = images[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
      np.testing.assert_array_equal(tiles[:, 3 * row + column], part)


def test_an_image_that_has_no_such_tiles_is_refused():
  with pytest.raises(AssertionError):
    jigsaw.cut(_images(8), 3)


@pytest.mark.parametrize(
  ("grid", "count", "least"), [(2, 23, 2), (3, 30, 7), (4, 30, 14)]
)
def test_permutations_are_far_from_each_other(grid, count, least):
  found = jigsaw.permutations(grid, 30)
  assert found.shape == (1 + count, grid * grid)
  np.testing.assert_array_equal(found[0], np.arange(grid * grid))
  for one in found:
    assert sorted(one) == list(range(grid * grid))
  distances = [
    sum(a != b for a, b in zip(found[i], found[j], strict=True))
    for i in range(len(found))
    for j in range(i)
  ]
  assert min(distances) >= least  # Of the published 30 of 3 x 3: 4.


def test_permutations_are_the_same_every_time():
  np.testing.assert_array_equal(
    jigsaw.permutations(3, 5), jigsaw.permutations(3, 30)[:6]
  )
