"""Compares SDNorm with the equations and with BatchNorm."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from networks import drawn

from comen_jax.nn.sdnorm import SDNorm


def _normal(seed, *shape):
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _probs(seed, B, M):
  e = np.exp(2 * _normal(seed, B, M))
  return e / e.sum(1, keepdims=True)


def _variables(seed, M, C):
  """Draws parameters and running statistics."""
  scale, bias, mean, var = _normal(seed, 4, M, C)
  return {
    "params": {"scale": 1 + 0.3 * scale, "bias": bias},
    "batch_stats": {"mean": mean, "var": 0.5 + np.square(var)},
  }


@functools.partial(jax.jit, static_argnums=0)
def _train(model, variables, z, p):
  return model.apply(variables, z, p, False, mutable=["batch_stats"])


@functools.partial(jax.jit, static_argnums=0)
def _eval(model, variables, z, p):
  return model.apply(variables, z, p, True)


@functools.partial(jax.jit, static_argnums=0)
def _grads(model, variables, z, p):
  """Differentiates a scalar of the output with respect to all inputs."""
  loss = lambda *inputs: jnp.sin(_train(model, *inputs)[0]).sum()
  return jax.grad(loss, (0, 1, 2))(variables, z, p)


def _start(model, z, p):
  """Returns the variables that init creates, without compiling it."""
  return drawn(model, z, p, use_running_average=False)


def _loop(
  variables, z, p, train, min_mass=2.0, momentum=0.9, epsilon=1e-5, prior=0.0
):
  """Computes Eq. 4 and 5 as printed, domain by domain, in float64.

  With `prior`, that many images of the running statistics join the batch.
  """
  z, p = np.asarray(z, np.float64), np.asarray(p, np.float64)
  f64 = lambda tree: {k: np.array(v, np.float64) for k, v in tree.items()}
  params, stats = f64(variables["params"]), f64(variables["batch_stats"])
  M = p.shape[1]
  y = np.zeros_like(z)
  for m in range(M):
    mean, var = stats["mean"][m].copy(), stats["var"][m].copy()
    if train and (M == 1 or p[:, m].sum() >= min_mass):
      w = p[:, m] / p[:, m].sum()
      inner = tuple(range(1, z.ndim - 1))
      mean = sum(w[i] * z[i : i + 1].mean(inner)[0] for i in range(len(z)))
      var = sum(
        w[i] * ((z[i : i + 1] - mean) ** 2).mean(inner)[0]
        for i in range(len(z))
      )
      old = stats["mean"][m].copy(), stats["var"][m].copy()
      for name, new in ("mean", mean), ("var", var):
        stats[name][m] = momentum * stats[name][m] + (1 - momentum) * new
      # E[x] and E[x^2] of both groups together.
      mass = p[:, m].sum()
      square = mass * (var + mean**2) + prior * (old[1] + old[0] ** 2)
      mean = (mass * mean + prior * old[0]) / (mass + prior)
      var = square / (mass + prior) - mean**2
    hat = (z - mean) / np.sqrt(var + epsilon)
    for i in range(len(z)):
      y[i] += p[i, m] * (params["scale"][m] * hat[i] + params["bias"][m])
  return y, stats


@pytest.mark.parametrize("shape", [(7, 4), (7, 5, 4), (7, 3, 2, 4)])
def test_agrees_with_the_equations(shape):
  z = _normal(0, *shape) * 2 + 3
  p = _probs(1, 7, 3)
  assert (p.sum(0) >= 2.1).any() and (p.sum(0) < 1.9).any()
  model, variables = SDNorm(3), _variables(2, 3, 4)
  y, state = _train(model, variables, z, p)
  want, stats = _loop(variables, z, p, train=True)
  np.testing.assert_allclose(y, want, rtol=2e-4, atol=2e-4)
  for name in stats:
    got = state["batch_stats"][name]
    np.testing.assert_allclose(got, stats[name], rtol=2e-4, atol=2e-4)

  y = _eval(model, variables, z, p)
  want, _ = _loop(variables, z, p, train=False)
  np.testing.assert_allclose(y, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("shape", [(6, 4), (6, 3, 5, 4), (1, 3, 5, 4)])
def test_one_domain_equals_batch_norm(shape):
  z = _normal(0, *shape) * 2 + 1
  ones = np.ones((shape[0], 1), np.float32)
  ours, theirs = SDNorm(1), nn.BatchNorm(momentum=0.9, epsilon=1e-5)
  a, b = _variables(1, 1, 4), _variables(1, 1, 4)
  b = jax.tree.map(lambda x: x[0], b)

  def theirs_loss(params, z):
    y, state = theirs.apply(
      {**b, "params": params}, z, False, mutable=["batch_stats"]
    )
    return jnp.sin(y).sum(), (y, state["batch_stats"])

  def ours_loss(params, z):
    y, state = _train(ours, {**a, "params": params}, z, ones)
    return jnp.sin(y).sum(), (y, state["batch_stats"])

  grad = lambda loss: jax.jit(jax.grad(loss, (0, 1), has_aux=True))
  got = grad(ours_loss)(a["params"], z)
  want = grad(theirs_loss)(b["params"], z)
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(
      x.reshape(y.shape), y, rtol=1e-4, atol=1e-4
    ),
    got,
    want,
  )
  np.testing.assert_allclose(
    _eval(ours, a, z, ones),
    jax.jit(theirs.apply, static_argnums=2)(b, z, True),
    rtol=1e-5,
    atol=1e-5,
  )


# Twelve times 1/6 may round to slightly less than 2 images.
@pytest.mark.parametrize("B, M", [(16, 3), (12, 6)])
def test_uniform_probabilities_equal_batch_norm_and_keep_branches_equal(B, M):
  z = _normal(0, B, 3, 3, 4) + 2
  p = np.full((B, M), (1 - 1e-6) / M, np.float32)
  model, theirs = SDNorm(M), nn.BatchNorm(momentum=0.9, epsilon=1e-5)
  variables = _start(model, z, p)

  def loss(params):
    y, state = _train(model, {**variables, "params": params}, z, p)
    return jnp.sin(y).sum(), (y, state["batch_stats"])

  grads, (y, stats) = jax.jit(jax.grad(loss, has_aux=True))(variables["params"])
  start = jax.tree.map(lambda x: x[0], variables)
  apply = functools.partial(theirs.apply, mutable=["batch_stats"])
  want, state = jax.jit(apply, static_argnums=2)(start, z, False)
  np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
  for name, value in stats.items():
    for m in range(M):
      expected = state["batch_stats"][name]
      np.testing.assert_allclose(value[m], expected, rtol=1e-5, atol=1e-5)
  for value in map(np.asarray, grads.values()):
    np.testing.assert_allclose(value, value[:1].repeat(M, 0), rtol=1e-6)


@pytest.mark.parametrize("mass", [0.0, 0.2])
def test_a_domain_with_little_mass_uses_and_keeps_its_running_statistics(mass):
  B = 8
  z = _normal(0, B, 2, 2, 4)
  share = np.full((B, 1), mass, np.float32)
  p = np.concatenate([(1 - share) * _probs(1, B, 2), share], axis=1)
  model, variables = SDNorm(3), _variables(2, 3, 4)
  y, state = _train(model, variables, z, p)
  want, _ = _loop(variables, z, p, train=True)
  np.testing.assert_allclose(y, want, rtol=2e-4, atol=2e-4)
  for name, old in variables["batch_stats"].items():
    new = state["batch_stats"][name]
    np.testing.assert_array_equal(new[2], old[2])
    assert (new[:2] != old[:2]).all()

  grads = _grads(model, variables, z, p)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(grads))
  for value in grads[0]["batch_stats"].values():
    np.testing.assert_array_equal(value, np.zeros_like(value))


def test_running_statistics_of_a_small_domain_are_constants():
  """The only image of a domain depends on no other image."""
  model, variables = SDNorm(3), _variables(2, 3, 4)
  z = _normal(0, 8, 2, 2, 4)
  hard = np.eye(3, dtype=np.float32)[[2, 0, 0, 0, 1, 1, 1, 1]]
  first = lambda z: jnp.sin(_train(model, variables, z, hard)[0][0]).sum()
  moved = np.asarray(jax.jit(jax.grad(first))(z))
  assert moved[0].any() and not moved[1:].any()


@pytest.mark.parametrize("prior_mass", [0.0, 3.0])
def test_gradients_of_input_parameters_and_probabilities(prior_mass):
  model, variables = SDNorm(2, prior_mass=prior_mass), _variables(2, 2, 3)
  z = _normal(0, 8, 2, 2, 3)
  p = _probs(1, 8, 2) * 0.5 + 0.25  # Both masses are well above `min_mass`.

  def f(params, z, p):
    return _train(model, {**variables, "params": params}, z, p)[0]

  args = (variables["params"], z, p)
  check_grads(jax.jit(f), args, 1, modes=["rev"], atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("shape", [(64, 3), (32, 6, 6, 3)])
def test_large_offset_is_normalised_to_unit_std(shape):
  z = 100 + 0.1 * _normal(0, *shape)
  p = _probs(1, shape[0], 3)
  model = SDNorm(3)
  variables = _start(model, z, p)
  y, state = _train(model, variables, z, p)
  axes = tuple(range(z.ndim - 1))
  want, stats = _loop(variables, z, p, train=True)
  np.testing.assert_allclose(y, want, atol=2e-4)
  np.testing.assert_allclose(np.std(y, axes), 1, atol=0.03)
  got = (state["batch_stats"]["var"] - 0.9) / 0.1
  np.testing.assert_allclose(got, (stats["var"] - 0.9) / 0.1, atol=1e-5)

  seen = {
    "mean": (stats["mean"] / 0.1).astype(np.float32),  # Started at 0.
    "var": ((stats["var"] - 0.9) / 0.1).astype(np.float32),  # Started at 1.
  }
  variables = {**variables, "batch_stats": seen}
  want, _ = _loop(variables, z, p, train=False)
  got = _eval(model, variables, z, p)
  np.testing.assert_allclose(got, want, atol=5e-6)


def test_shared_affine_has_one_scale_and_bias():
  z, p = _normal(0, 8, 2, 2, 4), _probs(1, 8, 2)
  model = SDNorm(2, per_domain_affine=False)
  variables = _start(model, z, p)
  assert variables["params"]["scale"].shape == (4,)
  assert variables["params"]["bias"].shape == (4,)
  params = {"scale": np.arange(1.0, 5.0), "bias": np.arange(4.0)}
  y, _ = _train(model, {**variables, "params": params}, z, p)
  both = jax.tree.map(lambda x: np.stack([x, x]), params)
  want, _ = _loop({**variables, "params": both}, z, p, train=True)
  np.testing.assert_allclose(y, want, rtol=2e-4, atol=2e-4)


def test_init_leaves_the_statistics_at_their_start():
  z, p = 5 + jnp.ones((8, 2, 2, 4)), _probs(1, 8, 2)
  init = jax.jit(SDNorm(2).init, static_argnums=3)
  stats = init(jax.random.key(0), z, p, False)["batch_stats"]
  np.testing.assert_array_equal(stats["mean"], np.zeros((2, 4)))
  np.testing.assert_array_equal(stats["var"], np.ones((2, 4)))


def test_bfloat16_in_gives_bfloat16_out_and_float32_statistics():
  z = _normal(0, 8, 2, 2, 4).astype(jnp.bfloat16)
  p, model, variables = _probs(1, 8, 2), SDNorm(2), _variables(2, 2, 4)
  y, state = _train(model, variables, z, p)
  assert y.dtype == jnp.bfloat16
  want, stats = _loop(variables, z.astype(np.float32), p, train=True)
  np.testing.assert_allclose(y.astype(jnp.float32), want, rtol=1e-2, atol=1e-2)
  for name in stats:
    got = state["batch_stats"][name]
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, stats[name], rtol=2e-4, atol=2e-4)
  y, _ = _train(SDNorm(2, dtype=jnp.float32), variables, z, p)
  assert y.dtype == jnp.float32


def test_no_intermediate_is_larger_than_the_input():
  z, p = np.ones((8, 6, 6, 4)), np.full((8, 5), 0.2)
  model, variables = SDNorm(5), _variables(0, 5, 4)
  train = _train.__wrapped__  # Not jitted, so that its operations show.
  loss = lambda z: train(model, variables, z, p)[0].sum()
  jaxpr = jax.make_jaxpr(jax.value_and_grad(loss))(z)
  sizes = [v.aval.size for e in _equations(jaxpr.jaxpr) for v in e.outvars]
  assert len(sizes) > 50 and max(sizes) == z.size


def _equations(jaxpr):
  """Yields all equations, including nested ones."""
  for equation in jaxpr.eqns:
    yield equation
    for inner in jax.tree.leaves(list(equation.params.values())):
      inner = getattr(inner, "jaxpr", inner)
      if hasattr(inner, "eqns"):
        yield from _equations(inner)


def test_the_input_is_all_that_is_kept_of_its_size_for_the_backward_pass():
  z, p = np.ones((8, 6, 6, 4)), np.full((8, 5), 0.2)
  model, variables = SDNorm(5), _variables(0, 5, 4)
  _, backward = jax.vjp(lambda z: _train(model, variables, z, p)[0], z)
  sizes = [x.size for x in jax.tree.leaves(backward) if hasattr(x, "size")]
  assert sizes.count(z.size) == 1 and max(sizes) == z.size


def test_wrong_shape_of_probabilities_is_refused():
  with pytest.raises(AssertionError):
    SDNorm(3).init(jax.random.key(0), jnp.ones((8, 4)), jnp.ones((8, 2)), False)


def test_running_statistics_count_as_further_images():
  B, M, C = 6, 3, 4
  variables, z = _variables(3, M, C), 2 + _normal(4, B, 5, 5, C)
  p = _probs(5, B, M)
  model = SDNorm(M, prior_mass=5.0, min_mass=1.0)
  y, updated = _train(model, variables, z, p)
  want, stats = _loop(variables, z, p, True, min_mass=1.0, prior=5.0)
  np.testing.assert_allclose(y, want, atol=2e-5)
  for name in ("mean", "var"):
    got = updated["batch_stats"][name]
    np.testing.assert_allclose(got, stats[name], atol=1e-5)
  plain, _ = _train(SDNorm(M, min_mass=1.0), variables, z, p)
  assert np.abs(y - plain).max() > 0.1
