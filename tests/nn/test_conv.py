import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from comen_jax.nn.conv import Conv3x3


@pytest.mark.parametrize("channels", [3, 16])
def test_equals_linen_conv_with_its_gradients(channels):
  ours, theirs = Conv3x3(4), nn.Conv(4, (3, 3))
  x = np.random.default_rng(0).normal(size=(8, 6, 5, channels))
  x = x.astype(np.float32)
  params = jax.jit(theirs.init)(jax.random.key(1), x)
  params["params"]["bias"] = np.arange(4, dtype=np.float32)
  born = jax.eval_shape(ours.init, jax.random.key(1), x)
  assert jax.tree.map(jnp.shape, born) == jax.tree.map(jnp.shape, params)

  def run(model):
    def loss(params, x):
      y = model.apply(params, x)
      return jnp.sin(y).sum(), y

    return jax.jit(jax.grad(loss, (0, 1), has_aux=True))

  want = run(theirs)(params, x)
  close = lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
  jax.tree.map(close, run(ours)(params, x), want)

  mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
  rows = jax.device_put(x, NamedSharding(mesh, P("data")))
  jax.tree.map(close, run(ours)(params, rows), want)


def test_only_cpu_gets_the_matmul():
  x = jnp.ones((1, 4, 4, 3))
  model = Conv3x3(4)
  params = jax.eval_shape(model.init, jax.random.key(0), x)
  traced = jax.jit(model.apply).trace(params, x)
  cpu = traced.lower(lowering_platforms=("cpu",)).as_text()
  gpu = traced.lower(lowering_platforms=("cuda",)).as_text()
  assert "stablehlo.convolution" not in cpu
  assert "stablehlo.convolution" in gpu and "dot_general" not in gpu


def test_dtype_is_of_the_output_and_parameters_stay_float32():
  x = jnp.ones((1, 4, 4, 3))
  model = Conv3x3(4, dtype=jnp.bfloat16)
  y, params = jax.eval_shape(model.init_with_output, jax.random.key(0), x)
  assert y.dtype == jnp.bfloat16
  assert all(p.dtype == jnp.float32 for p in jax.tree.leaves(params))
