"""The convolution: values and gradients of lax.conv, chosen by platform."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.nn import winograd
from comen_jax.nn.conv import Conv, conv

CASES = {  # Batch, height, width, channels, features, kernel, stride, padding.
  "3x3": (8, 6, 5, 3, 4, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "odd batch": (5, 4, 4, 2, 3, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "stride 2": (4, 7, 8, 3, 4, (3, 3), (2, 2), ((1, 1), (1, 1))),
  "stem": (4, 16, 16, 3, 4, (7, 7), (2, 2), ((3, 3), (3, 3))),
  "1x1": (4, 6, 6, 3, 4, (1, 1), (2, 2), ((0, 0), (0, 0))),
  "Winograd": (4, 6, 8, 8, 16, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "Winograd, odd": (6, 7, 5, 16, 8, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "Winograd, many channels": (
    32,
    4,
    4,
    8,
    72,
    (3, 3),
    (1, 1),
    ((1, 1), (1, 1)),
  ),
  "few tiles": (2, 4, 4, 8, 16, (3, 3), (1, 1), ((1, 1), (1, 1))),
  "AlexNet": (2, 23, 23, 3, 4, (11, 11), (4, 4), ((2, 2), (2, 2))),
}


def made(case):
  B, H, W, C, F, size, stride, padding = CASES[case]
  rng = np.random.default_rng(0)
  x = jnp.asarray(rng.normal(size=(B, H, W, C)), jnp.float32)
  kernel = jnp.asarray(rng.normal(size=(*size, C, F)), jnp.float32)
  return x, kernel, stride, padding


def plain(x, kernel, bias, stride, padding):
  y = jax.lax.conv_general_dilated(
    x, kernel, stride, padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
  )
  return y if bias is None else y + bias.reshape(1, 1, 1, -1)


@pytest.mark.parametrize("case", CASES)
def test_value_and_gradients_are_those_of_lax_conv(case):
  x, kernel, stride, padding = made(case)

  bias = jnp.linspace(-1.0, 1.0, kernel.shape[-1])

  def loss(x, kernel, bias, function):
    y = function(x, kernel, bias, stride, padding)
    return jnp.square(y + 0.1).sum()

  both = [
    jax.jit(jax.value_and_grad(loss, (0, 1, 2)), static_argnums=3)(
      x, kernel, bias, f
    )
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
    return (
      conv(half(x), kernel, None, stride, padding).astype(jnp.float32).sum()
    )

  ours = jax.jit(jax.grad(loss))(half(kernel))
  want = jax.grad(lambda k: plain(x, k, None, stride, padding).sum())(kernel)
  assert ours.dtype == jnp.bfloat16
  np.testing.assert_allclose(
    ours.astype(jnp.float32), want, rtol=0.02, atol=0.02 * np.abs(want).max()
  )


def test_which_cases_are_winograds():
  chosen = [case for case in CASES if winograd.suits(*made(case))]
  assert chosen == [case for case in CASES if case.startswith("Winograd")]


def test_winograd_rounds_like_a_plain_convolution():
  """Against float64; the plain float32 convolution is about as far away."""
  rng = np.random.default_rng(0)
  x = rng.normal(size=(2, 8, 8, 64)).astype(np.float32)
  kernel = rng.normal(size=(3, 3, 64, 8)).astype(np.float32)
  padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(np.float64)
  want = sum(
    padded[:, i : i + 8, j : j + 8] @ kernel[i, j].astype(np.float64)
    for i in range(3)
    for j in range(3)
  )
  ours = winograd.forward(jnp.asarray(x), jnp.asarray(kernel))
  assert np.abs(ours - want).max() < 3e-6 * np.abs(want).max()


@pytest.mark.parametrize("case", ["3x3", "Winograd"])
@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_only_cpu_has_its_own_functions(platform, case):
  """Forward, input gradient and weight gradient are lax.conv elsewhere."""
  x, kernel, stride, padding = made(case)
  loss = lambda x, k: jnp.square(conv(x, k, None, stride, padding)).sum()
  step = jax.jit(jax.grad(loss, (0, 1)))
  text = step.trace(x, kernel).lower(lowering_platforms=(platform,)).as_text()
  own = {"3x3": 2, "Winograd": 0}[case]
  count = text.count("stablehlo.convolution")
  assert count == (own if platform == "cpu" else 3)
  assert ("stablehlo.dot_general" in text) == (platform == "cpu")
