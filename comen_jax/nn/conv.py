"""Convolution that is fast on CPU, too.

On CPU a 3x3 convolution with stride 1 is Winograd's (`winograd`). All others
are XLA's, but for the weight gradient: XLA's is two to four times slower than
the forward pass, so it is a sum of small matrix products here. GPU and TPU have
XLA's own functions. What is used is chosen when a step is lowered for its
platform.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from comen_jax.nn import winograd

_DIMENSIONS = ("NHWC", "HWIO", "NHWC")
_CHUNK = 4  # Images per matrix product: their patches stay in the CPU's cache.


class Conv(nn.Module):
  """2D convolution, `nn.Conv` with the functions of this file.

  Attributes:
    features: number of output channels.
    kernel_size: height and width of the kernel.
    strides: strides in height and width.
    padding: zeros before and after, for height and width.
    use_bias: whether to add a bias.
    dtype: dtype of the computation. Parameters are float32.
    kernel_init: initialiser of the kernel.
  """

  features: int
  kernel_size: tuple[int, int]
  strides: tuple[int, int] = (1, 1)
  padding: tuple[tuple[int, int], tuple[int, int]] = ((1, 1), (1, 1))
  use_bias: bool = True
  dtype: Any = jnp.float32
  kernel_init: nn.initializers.Initializer = nn.initializers.lecun_normal()

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    """x: [B, H, W, C] -> [B, H', W', features]."""
    shape = (*self.kernel_size, x.shape[-1], self.features)
    kernel = self.param("kernel", self.kernel_init, shape, jnp.float32)
    bias = None
    if self.use_bias:
      zeros = nn.initializers.zeros
      bias = self.param("bias", zeros, (self.features,), jnp.float32)
      bias = bias.astype(self.dtype)
    return conv(
      x.astype(self.dtype),
      kernel.astype(self.dtype),
      bias,
      self.strides,
      self.padding,
    )


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def conv(
  x: jax.Array,
  kernel: jax.Array,
  bias: jax.Array | None,
  strides: Sequence[int],
  padding: Sequence[tuple[int, int]],
) -> jax.Array:
  """x: [B, H, W, C], kernel: [h, w, C, F], bias: [F] -> [B, H', W', F]."""
  plain = partial(_plain, strides=strides, padding=padding)
  if winograd.suits(x, kernel, strides, padding):
    y = lax.platform_dependent(x, kernel, cpu=winograd.forward, default=plain)
  else:
    y = plain(x, kernel)
  return y if bias is None else y + bias.reshape(1, 1, 1, -1)


def _plain(x, kernel, strides, padding):
  return lax.conv_general_dilated(
    x, kernel, strides, padding, dimension_numbers=_DIMENSIONS
  )


def _forward(x, kernel, bias, strides, padding):
  return conv(x, kernel, bias, strides, padding), (x, kernel, bias)


def _backward(strides, padding, saved, gradient):
  x, kernel, bias = saved
  plain = partial(_plain, strides=strides, padding=padding)

  def dx_by_xla(gradient, kernel):
    return jax.vjp(lambda x: plain(x, kernel), x)[1](gradient)[0]

  def parameters_by_xla(x, gradient):
    (dk,) = jax.vjp(lambda k: plain(x, k), kernel)[1](gradient)
    return dk, gradient.sum(axis=(0, 1, 2))

  if winograd.suits(x, kernel, strides, padding):
    dx = lax.platform_dependent(
      gradient, kernel, cpu=winograd.input_gradient, default=dx_by_xla
    )
    parameters_on_cpu = winograd.parameter_gradients
  else:
    dx = dx_by_xla(gradient, kernel)
    parameters_on_cpu = partial(
      parameter_gradients, shape=kernel.shape, strides=strides, padding=padding
    )
  dk, db = lax.platform_dependent(
    x, gradient, cpu=parameters_on_cpu, default=parameters_by_xla
  )
  return dx, dk, None if bias is None else db


conv.defvjp(_forward, _backward)


def parameter_gradients(
  x: jax.Array,
  gradient: jax.Array,
  *,
  shape: tuple[int, int, int, int],
  strides: Sequence[int],
  padding: Sequence[tuple[int, int]],
) -> tuple[jax.Array, jax.Array]:
  """Gradients of kernel and bias as a sum of products, a few images at a time.

  Args:
    x: [B, H, W, C], input of the convolution.
    gradient: [B, H', W', F], gradient of its output.
    shape: shape of the kernel, [h, w, C, F].
    strides: strides of the convolution.
    padding: padding of the convolution.
  """
  count = _CHUNK if x.shape[0] % _CHUNK == 0 else 1
  h, w, channels, features = shape
  rows, columns = gradient.shape[1:3]
  width = h * w * channels + 1

  def patches(x: jax.Array) -> jax.Array:
    """[n, H, W, C] -> [n H' W', h w C + 1]; the last column is 1."""
    ones = jnp.ones((x.shape[0], rows, columns, 1), x.dtype)
    x = jnp.pad(x, ((0, 0), *padding, (0, 0)))
    parts = [
      x[
        :,
        i : i + strides[0] * (rows - 1) + 1 : strides[0],
        j : j + strides[1] * (columns - 1) + 1 : strides[1],
      ]
      for i in range(h)
      for j in range(w)
    ]
    return jnp.concatenate([*parts, ones], axis=-1).reshape(-1, width)

  def add(total: jax.Array, chunk: tuple[jax.Array, jax.Array]):
    x, gradient = chunk
    product = lax.dot_general(
      gradient.reshape(-1, features),
      patches(x),
      (((0,), (0,)), ((), ())),
      preferred_element_type=jnp.float32,
    )
    return total + product, None

  split = lambda a: a.reshape(-1, count, *a.shape[1:])
  zeros = jnp.zeros((features, width), jnp.float32)
  total, _ = lax.scan(add, zeros, (split(x), split(gradient)))
  total = total.T.astype(x.dtype)
  return total[:-1].reshape(shape), total[-1]
