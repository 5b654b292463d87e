"""Gradients that are reversed, clipped or kept from some parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.gradients import clip, only, reverse

PARAMS = {"a": jnp.array([3.0, 0.0]), "b": jnp.array([[4.0]])}


def half_square(params):
  """Its gradient is the parameters themselves, of norm 5."""
  return sum(jnp.sum(leaf**2) / 2 for leaf in jax.tree.leaves(params))


def assert_equal(found, want):
  jax.tree.map(
    lambda f, w: np.testing.assert_allclose(f, w, rtol=1e-6), found, want
  )


@pytest.mark.parametrize("weight", [0.0, 0.25, 2.0])
def test_reverse_multiplies_the_gradient_by_minus_the_weight(weight):
  x = jnp.array([1.5, -2.0])
  loss = lambda x, w: jnp.sum(jnp.array([2.0, 5.0]) * reverse(x, w))
  value, gradient = jax.jit(jax.value_and_grad(loss))(x, weight)
  assert value == 2 * 1.5 - 5 * 2
  np.testing.assert_allclose(gradient, [-2 * weight, -5 * weight])
  # The weight is no parameter, and may be a value of the step.
  assert jax.grad(loss, argnums=1)(x, jnp.float32(weight)) == 0


def test_what_follows_a_reversal_learns_as_ever():
  loss = lambda w, x: jnp.sum(w * reverse(x, 3.0))
  w, x = jnp.array([1.0, 2.0]), jnp.array([5.0, 7.0])
  learned, hindered = jax.grad(loss, argnums=(0, 1))(w, x)
  np.testing.assert_allclose(learned, x)
  np.testing.assert_allclose(hindered, -3 * w)


@pytest.mark.parametrize("norm", [0.1, 4.0, 5.0, 100.0])
def test_clip_limits_the_norm_of_all_leaves_together(norm):
  found = jax.jit(jax.grad(lambda p: half_square(clip(p, norm))))(PARAMS)
  scale = min(1.0, norm / 5)
  assert_equal(found, jax.tree.map(lambda leaf: scale * leaf, PARAMS))
  jax.tree.map(np.testing.assert_array_equal, clip(PARAMS, norm), PARAMS)


def test_clip_leaves_no_gradient_as_it_is():
  found = jax.grad(lambda p: 0 * half_square(clip(p, 0.1)))(PARAMS)
  assert_equal(found, jax.tree.map(jnp.zeros_like, PARAMS))


def test_only_the_chosen_parameters_get_a_gradient():
  mask = {"a": False, "b": True}
  loss = lambda p: half_square(only(p, mask))
  value, found = jax.value_and_grad(loss)(PARAMS)
  assert value == 12.5
  assert_equal(found, {"a": jnp.zeros(2), "b": PARAMS["b"]})


def test_the_order_of_clip_and_only_says_which_leaves_count():
  mask = {"a": False, "b": True}
  own = jax.grad(lambda p: half_square(only(clip(p, 2.0), mask)))(PARAMS)
  assert_equal(own["b"], jnp.array([[2.0]]))  # 4 clipped to 2.
  both = jax.grad(lambda p: half_square(clip(only(p, mask), 2.0)))(PARAMS)
  assert_equal(both["b"], jnp.array([[4.0 * 2 / 5]]))  # a counted, too.
