"""Cuts images into tiles and puts them together in another order.

This is the puzzle of JiGen (Carlucci et al., CVPR 2019).
"""

import itertools
import math

import chex
import jax
import numpy as np

_CANDIDATES = 5000  # Permutations among which the next one is chosen.


def cut(images: jax.Array, grid: int) -> jax.Array:
  """Cuts images into grid x grid tiles, row by row.

  Args:
    images: [B, H, W, C]; `grid` divides H and W.
    grid: number of tiles along a side.

  Returns:
    [B, grid^2, H / grid, W / grid, C].
  """
  chex.assert_rank(images, 4)
  B, H, W, C = images.shape
  chex.assert_is_divisible(H, grid)
  chex.assert_is_divisible(W, grid)
  h, w = H // grid, W // grid
  rows = images.reshape(B, grid, h, grid, w, C).swapaxes(2, 3)
  return rows.reshape(B, grid * grid, h, w, C)


def join(tiles: jax.Array, grid: int) -> jax.Array:
  """Puts tiles [B, grid^2, h, w, C] together: the inverse of `cut`."""
  chex.assert_rank(tiles, 5)
  B, _, h, w, C = tiles.shape
  rows = tiles.reshape(B, grid, grid, h, w, C).swapaxes(2, 3)
  return rows.reshape(B, grid * h, grid * w, C)


def permutations(grid: int, count: int) -> np.ndarray:
  """Chooses permutations of the tiles that differ much from each other.

  The first one leaves all tiles in their place. Each next one has the greatest
  Hamming distance to the nearest of those before it, among all permutations if
  they are few, else among some that are drawn with a fixed seed.

  Args:
    grid: number of tiles along a side, 2 or more.
    count: wanted number of permutations beside the first one; there are fewer
      if the tiles have fewer.

  Returns:
    int32 [1 + count, grid^2]; tile t of a result is tile p[t] of the image.
  """
  tiles = grid * grid
  if math.factorial(tiles) <= _CANDIDATES:
    pool = np.array(list(itertools.permutations(range(tiles))), np.int32)
  else:
    ordered = np.tile(np.arange(tiles, dtype=np.int32), (_CANDIDATES, 1))
    pool = np.random.default_rng(0).permuted(ordered, axis=1)
  chosen = [np.arange(tiles, dtype=np.int32)]
  nearest = (pool != chosen[0]).sum(axis=1)
  while len(chosen) <= count and nearest.max() > 0:
    chosen.append(pool[nearest.argmax()])
    nearest = np.minimum(nearest, (pool != chosen[-1]).sum(axis=1))
  return np.stack(chosen)
