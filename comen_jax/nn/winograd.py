"""3x3 convolution by Winograd's F(2x2, 3x3), for CPU.

Each 2x2 tile of the output is computed from a 4x4 tile of the input with 16
products instead of 36 (Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks", 2016): y = A^T [(G k G^T) * (B^T x B)] A. The constants of A
and B are 0 and 1, those of G are 1 and 1/2. So the rounding error is that of a
plain convolution, about 1e-6 of the largest value.

Tiles are [T, C], T = B * rows * columns of tiles. The 16 places of a tile are a
list, in row order, so that XLA can write each one where its matmul reads it.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_G = np.array(
  [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32
)
_MIN_CHANNELS = 8
# Tiles per matmul of the weight gradient of few channels: XLA's large matmuls
# are slow there, since their output is small.
_RUN, _FEW_CHANNELS = 128, 64


def suits(
  x: jax.Array,
  kernel: jax.Array,
  strides: Sequence[int],
  padding: Sequence[tuple[int, int]],
) -> bool:
  """Whether these functions can compute the convolution and are faster.

  Few tiles do not pay for the transform of a large kernel. An exported network
  has no fixed batch size, and stays plain.
  """
  B, H, W, C = x.shape
  if not isinstance(B, int):
    return False
  tiles = B * _half(H) * _half(W)
  return (
    kernel.shape[:2] == (3, 3)
    and tuple(strides) == (1, 1)
    and tuple(map(tuple, padding)) == ((1, 1), (1, 1))
    and C >= _MIN_CHANNELS
    and tiles >= max(C, kernel.shape[3])
    and x.dtype == jnp.float32
  )


def forward(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Convolves x [B, H, W, C] with kernel [3, 3, C, F] -> [B, H, W, F]."""
  B, H, W, _ = x.shape
  kernels = jnp.einsum("ai,bj,ijcf->abcf", _G, _G, kernel)
  kernels = kernels.reshape(16, *kernel.shape[2:])
  tiles = [v @ k for v, k in zip(_input_tiles(x), kernels)]
  columns = [_a_transposed(tiles[4 * i : 4 * i + 4]) for i in range(4)]
  y = [_a_transposed([c[j] for c in columns]) for j in range(2)]
  shape = (B, _half(H), _half(W), -1)
  rows = [
    jnp.stack([y[j][i].reshape(shape) for j in range(2)], axis=3)
    for i in range(2)
  ]
  y = jnp.stack(rows, axis=2).reshape(B, 2 * _half(H), 2 * _half(W), -1)
  return y[:, :H, :W]


def input_gradient(gradient: jax.Array, kernel: jax.Array) -> jax.Array:
  """Gradient of the output [B, H, W, F] -> of the input [B, H, W, C]."""
  return forward(gradient, jnp.flip(kernel, (0, 1)).transpose(0, 1, 3, 2))


def parameter_gradients(
  x: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Computes the gradients of the kernel [3, 3, C, F] and of a bias [F].

  Args:
    x: [B, H, W, C], input of the convolution.
    gradient: [B, H, W, F], gradient of its output.
  """
  C, F = x.shape[-1], gradient.shape[-1]
  tiles = _output_tiles(gradient)
  total = [_product(v, g) for v, g in zip(_input_tiles(x), tiles)]
  total = jnp.stack(total).reshape(4, 4, C, F)
  sums = tiles[5]  # (1, 1) of A g A^T is the sum of the tile.
  return jnp.einsum("ai,bj,abcf->ijcf", _G, _G, total), sums.sum(axis=0)


def _input_tiles(x: jax.Array) -> list[jax.Array]:
  """B^T x B of the 4x4 tiles of x, which overlap by two: 16 of [T, C]."""
  _, H, W, C = x.shape
  # One zero around the image, and another one after an odd side.
  x = jnp.pad(x, ((0, 0), (1, 1 + H % 2), (1, 1 + W % 2), (0, 0)))
  rows = _b_transposed(_windows(x, 1, _half(H)))
  return [
    v.reshape(-1, C)
    for row in rows
    for v in _b_transposed(_windows(row, 2, _half(W)))
  ]


def _output_tiles(gradient: jax.Array) -> list[jax.Array]:
  """A g A^T of the 2x2 tiles of the gradient: 16 of [T, F]."""
  _, H, W, F = gradient.shape
  g = jnp.pad(gradient, ((0, 0), (0, H % 2), (0, W % 2), (0, 0)))
  rows = _a(g[:, 0::2], g[:, 1::2])
  return [
    v.reshape(-1, F)
    for row in rows
    for v in _a(row[:, :, 0::2], row[:, :, 1::2])
  ]


def _product(tiles: jax.Array, gradient: jax.Array) -> jax.Array:
  """tiles^T gradient: [T, C], [T, F] -> [C, F]."""
  run = tiles.shape[0]
  if max(tiles.shape[1], gradient.shape[1]) <= _FEW_CHANNELS:
    run = max(n for n in range(1, min(_RUN, run) + 1) if run % n == 0)
  return lax.dot_general(
    tiles.reshape(-1, run, tiles.shape[1]),
    gradient.reshape(-1, run, gradient.shape[1]),
    (((1,), (1,)), ((0,), (0,))),
  ).sum(axis=0)


def _windows(x: jax.Array, axis: int, count: int) -> list[jax.Array]:
  """Elements 0 to 3 of windows of four with stride two along an axis."""
  return [
    lax.slice_in_dim(x, i, i + 2 * count - 1, 2, axis=axis) for i in range(4)
  ]


def _b_transposed(x: list[jax.Array]) -> list[jax.Array]:
  return [x[0] - x[2], x[1] + x[2], x[2] - x[1], x[1] - x[3]]


def _a_transposed(x: list[jax.Array]) -> list[jax.Array]:
  return [x[0] + x[1] + x[2], x[1] - x[2] - x[3]]


def _a(x: jax.Array, y: jax.Array) -> list[jax.Array]:
  return [x, x + y, x - y, -y]


def _half(size: int) -> int:
  return (size + 1) // 2
