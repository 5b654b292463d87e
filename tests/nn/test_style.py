"""Compares the style with a plain loop and F_d with its equations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from networks import drawn

from comen_jax.nn.style import DomainPredictor, style_statistics


def _loop(f, epsilon):
  B, H, W, C = f.shape
  out = np.zeros((B, 2 * C))
  for b in range(B):
    for c in range(C):
      pixels = [float(f[b, h, w, c]) for h in range(H) for w in range(W)]
      mean = sum(pixels) / (H * W)
      var = sum((x - mean) ** 2 for x in pixels) / (H * W)
      out[b, c], out[b, C + c] = mean, np.sqrt(var + epsilon)
  return out


@pytest.mark.parametrize("offset, scale", [(0.0, 1.0), (100.0, 0.1)])
def test_style_is_mean_then_std(offset, scale):
  f = np.random.default_rng(0).normal(offset, scale, (2, 5, 4, 3))
  f = f.astype(np.float32)
  got = jax.jit(style_statistics)(f)
  np.testing.assert_allclose(got, _loop(f, 1e-5), rtol=2e-4, atol=2e-4)


def test_style_has_gradients_also_of_a_flat_map():
  f = np.random.default_rng(0).normal(size=(2, 3, 3, 2)).astype(np.float32)
  style = jax.jit(style_statistics)
  check_grads(style, (f,), order=1, modes=["rev"], atol=2e-2, rtol=2e-2)
  grad = jax.grad(lambda f: style(f).sum())(np.ones_like(f))
  np.testing.assert_allclose(grad, 1 / 9, rtol=1e-6)


def test_style_of_bfloat16_is_float32():
  f = jnp.ones((1, 2, 2, 3), jnp.bfloat16)
  assert style_statistics(f).dtype == jnp.float32


def test_domain_predictor_standardises_and_never_writes():
  style = np.random.default_rng(0).normal(1, 3, (4, 6)).astype(np.float32)
  predictor = DomainPredictor(num_domains=3, hidden=5)
  stats = jax.jit(predictor.init)(jax.random.key(1), style)["batch_stats"]
  np.testing.assert_array_equal(stats["mean"], np.zeros(6))
  np.testing.assert_array_equal(stats["std"], np.ones(6))

  params = drawn(predictor, style)["params"]
  measured = {"mean": style.mean(0), "std": style.std(0) + 0.1}
  apply = jax.jit(functools.partial(predictor.apply, mutable=["batch_stats"]))
  logits, state = apply({"params": params, "batch_stats": measured}, style)
  first, second = params["Dense_0"], params["Dense_1"]
  x = (style - measured["mean"]) / measured["std"]
  x = np.maximum(x @ first["kernel"] + first["bias"], 0)
  x = x @ second["kernel"] + second["bias"]
  np.testing.assert_allclose(logits, x, rtol=2e-4, atol=2e-4)
  for name, value in measured.items():
    np.testing.assert_array_equal(state["batch_stats"][name], value)
