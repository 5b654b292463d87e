"""BatchNorm is linen's: output, statistics, gradients, names."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.nn.batch_norm import BatchNorm

OURS, THEIRS = BatchNorm(), nn.BatchNorm(momentum=0.9, epsilon=1e-5)


def _made(shape):
  rng = np.random.default_rng(0)
  z = jnp.asarray(rng.normal(2, 3, shape), jnp.float32)
  draw = lambda: jnp.asarray(rng.uniform(0.5, 2, shape[-1]), jnp.float32)
  return z, {
    "params": {"scale": draw(), "bias": draw()},
    "batch_stats": {"mean": draw(), "var": draw()},
  }


@pytest.mark.parametrize("shape", [(6, 4), (5, 3, 2, 4), (1, 4, 4, 3)])
def test_training_is_linens(shape):
  z, variables = _made(shape)

  def values(norm):
    def loss(params, z):
      y, state = norm.apply(
        {**variables, "params": params}, z, False, mutable=["batch_stats"]
      )
      return jnp.sin(y).sum(), (y, state)

    return jax.jit(jax.grad(loss, (0, 1), has_aux=True))(variables["params"], z)

  compare = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
  jax.tree.map(compare, values(OURS), values(THEIRS))


def test_evaluation_and_start_are_linens():
  z, variables = _made((5, 3, 2, 4))
  ours, theirs = (norm.apply(variables, z, True) for norm in (OURS, THEIRS))
  np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
  ours, theirs = (
    norm.init(jax.random.key(0), z, False) for norm in (OURS, THEIRS)
  )
  jax.tree.map(np.testing.assert_array_equal, ours, theirs)


def test_a_large_offset_loses_no_digits():
  """Linen's E[x^2] - E[x]^2 is wrong by per cents here."""
  z = 1000 + 0.1 * np.random.default_rng(0).normal(size=(32, 6, 6, 3))
  z = z.astype(np.float32)
  _, variables = _made(z.shape)
  _, state = OURS.apply(variables, z, False, mutable=["batch_stats"])
  old = np.asarray(variables["batch_stats"]["var"])
  var = (np.asarray(state["batch_stats"]["var"]) - 0.9 * old) / 0.1
  np.testing.assert_allclose(
    var, z.astype(np.float64).var((0, 1, 2)), rtol=1e-3
  )


def test_bfloat16_in_gives_bfloat16_out_and_float32_statistics():
  z, variables = _made((5, 3, 2, 4))
  half = z.astype(jnp.bfloat16)
  y, state = OURS.apply(variables, half, False, mutable=["batch_stats"])
  assert y.dtype == jnp.bfloat16
  assert state["batch_stats"]["var"].dtype == jnp.float32
