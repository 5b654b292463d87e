"""The convolution: values and gradients of lax.conv, chosen by platform."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.nn.conv import Conv, conv

CASES = {  # Batch, height, width, channels, features, kernel, stride, padding.
  "3x3": (8, 6, 5, 3, 4, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "odd batch": (5, 4, 4, 2, 3, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "stride 2": (4, 7, 8, 3, 4, (3, 3), (2, 2), ((1, 1), (1, 1))),
  "stem": (4, 16, 16, 3, 4, (7, 7), (2, 2), ((3, 3), (3, 3))),
  "1x1": (4, 6, 6, 3, 4, (1, 1), (2, 2), ((0, 0), (0, 0))),
  "AlexNet": (2, 23, 23, 3, 4, (11, 11), (4, 4), ((2, 2), (2, 2))),
}


def made(case):
  B, H, W, C, F, size, stride, padding = CASES[case]
  rng = np.random.default_rng(0)
  x = jnp.asarray(rng.normal(size=(B, H, W, C)), jnp.float32)
  kernel = jnp.asarray(rng.normal(size=(*size, C, F)), jnp.float32)
  return x, kernel, stride, padding


def plain(x, kernel, stride, padding):
  return jax.lax.conv_general_dilated(
    x, kernel, stride, padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
  )


@pytest.mark.parametrize("case", CASES)
def test_value_and_gradients_are_those_of_lax_conv(case):
  x, kernel, stride, padding = made(case)

  def loss(x, kernel, function):
    y = function(x, kernel, stride, padding)
    return jnp.square(y + 0.1).sum()

  both = [
    jax.jit(jax.value_and_grad(loss, (0, 1)), static_argnums=2)(x, kernel, f)
    for f in (conv, plain)
  ]
  for ours, want in zip(*map(jax.tree.leaves, both)):
    scale = np.abs(want).max()
    np.testing.assert_allclose(ours / scale, want / scale, atol=2e-6)


def test_layer_is_nn_conv_with_the_same_parameters():
  x, *_ = made("3x3")
  ours, flax = Conv(4, (3, 3)), nn.Conv(4, (3, 3))
  variables = flax.init(jax.random.key(0), x)
  again = ours.init(jax.random.key(0), x)
  jax.tree.map(np.testing.assert_array_equal, again, variables)
  np.testing.assert_allclose(
    ours.apply(variables, x), flax.apply(variables, x), rtol=1e-6, atol=1e-6
  )


def test_bfloat16_gradients_are_summed_in_float32():
  x, kernel, stride, padding = made("3x3")
  half = lambda a: a.astype(jnp.bfloat16)

  def loss(kernel):
    return conv(half(x), kernel, stride, padding).astype(jnp.float32).sum()

  ours = jax.jit(jax.grad(loss))(half(kernel))
  want = jax.grad(lambda k: plain(x, k, stride, padding).sum())(kernel)
  assert ours.dtype == jnp.bfloat16
  np.testing.assert_allclose(
    ours.astype(jnp.float32), want, rtol=0.02, atol=0.02 * np.abs(want).max()
  )


@pytest.mark.parametrize(("platform", "convolutions"), [
  ("cpu", 2), ("cuda", 3), ("tpu", 3),
])  # fmt: skip
def test_only_cpu_has_its_own_weight_gradient(platform, convolutions):
  """Forward, input gradient and, but for CPU, weight gradient are lax.conv."""
  x, kernel, stride, padding = made("3x3")
  loss = lambda x, k: jnp.square(conv(x, k, stride, padding)).sum()
  step = jax.jit(jax.grad(loss, (0, 1)))
  text = step.trace(x, kernel).lower(lowering_platforms=(platform,)).as_text()
  assert text.count("stablehlo.convolution") == convolutions
  assert ("stablehlo.while" in text) == (platform == "cpu")
