"""The two functions of a norm that read and write whole feature maps.

Their gradients are written by hand: of all arrays as large as z, the backward
pass keeps z only, and it reads it as seldom as can be. All else that a norm
computes has one number per image and channel.
"""

import jax
import jax.numpy as jnp


@jax.custom_vjp
def image_moments(z: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Mean and variance of each image: [B, ..., C] -> 2 x [B, C], float32."""
  z = z.astype(jnp.float32)
  inner = _inner(z)
  mean = z.mean(axis=inner, keepdims=True)
  var = jnp.square(z - mean).mean(axis=inner)
  return mean.reshape(var.shape), var


def _moments_forward(z: jax.Array):
  mean, var = image_moments(z)
  return (mean, var), (z, mean)


def _moments_backward(saved, gradients):
  z, mean = saved
  d_mean, d_var = gradients
  count = z[0, ..., 0].size
  deviation = z.astype(jnp.float32) - _wide(mean, z)
  dz = _wide(2 / count * d_var, z) * deviation + _wide(d_mean / count, z)
  return (dz.astype(z.dtype),)


image_moments.defvjp(_moments_forward, _moments_backward)


@jax.custom_vjp
def affine(
  z: jax.Array, a: jax.Array, b: jax.Array, center: jax.Array
) -> jax.Array:
  """Computes a * (z - center) + b in float32, one map per image.

  Args:
    z: [B, ..., C].
    a: [B, C].
    b: [B, C].
    center: [B, C] or [1, C], a constant: it has no gradient. With the mean
      of each image, XLA computes z - center once for both functions.
  """
  z = z.astype(jnp.float32)
  return _wide(a, z) * (z - _wide(center, z)) + _wide(b, z)


def _affine_forward(z, a, b, center):
  return affine(z, a, b, center), (z, a, center)


def _affine_backward(saved, gradient):
  z, a, center = saved
  inner = _inner(z)
  deviation = z.astype(jnp.float32) - _wide(center, z)
  d_a = (gradient * deviation).sum(axis=inner)
  d_b = gradient.sum(axis=inner)
  dz = (_wide(a, z) * gradient).astype(z.dtype)
  return dz, d_a, d_b, jnp.zeros_like(center)


affine.defvjp(_affine_forward, _affine_backward)


def _inner(z: jax.Array) -> tuple[int, ...]:
  """The axes between the batch and the channels."""
  return tuple(range(1, z.ndim - 1))


def _wide(x: jax.Array, z: jax.Array) -> jax.Array:
  """[B, C] or [1, C] -> [B, 1, ..., 1, C] with as many axes as z."""
  return x.reshape(x.shape[0], *(1,) * (z.ndim - 2), x.shape[1])
