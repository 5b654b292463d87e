"""Penalties on differences between domains, against plain loops in numpy.

Most batches here have three domains, of which the second has no image.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.methods import groupdro, penalties

coral, mmd = jax.jit(penalties.coral), jax.jit(penalties.mmd)
invariance = jax.jit(penalties.invariance)
DOMAINS = np.array([0, 2, 0, 2, 2, 0, 0])
W = jnp.asarray(np.eye(3)[DOMAINS], jnp.float32)


@pytest.fixture
def rng():
  return np.random.default_rng(0)


def drawn(rng, *shape) -> jax.Array:
  return jnp.asarray(rng.normal(size=shape), jnp.float32)


def test_variance_of_the_losses_that_are_there_by_hand():
  # Losses 1, 2 and 6: mean 3, squares 4, 1 and 9.
  losses = jnp.array([1.0, 50.0, 2.0, 6.0])
  present = jnp.array([True, False, True, True])
  assert penalties.variance(losses, present) == pytest.approx(14 / 3)


def test_equal_losses_have_no_variance():
  losses = jnp.array([0.7, 0.7, 0.0])
  assert penalties.variance(losses, losses > 0) == 0
  assert penalties.variance(losses[:1], losses[:1] > 0) == 0


def test_irm_is_the_product_of_two_derivatives_by_a_scale(rng):
  logits, labels = drawn(rng, 7, 4), jnp.array([0, 1, 2, 3, 0, 1, 2])

  @jax.jit
  @jax.grad
  def derivative(scale, of):
    p = jax.nn.log_softmax(scale * logits)
    return -(p[jnp.arange(7), labels] * of).sum() / of.sum()

  products = []
  for domain in (0, 2):
    rows = np.flatnonzero(domain == DOMAINS)
    halves = rows[::2], rows[1::2]  # Every other image of the domain.
    first, second = (
      derivative(1.0, jnp.zeros(7).at[half].set(1.0)) for half in halves
    )
    products.append(first * second)
  found = invariance(logits, labels, W)
  assert found == pytest.approx(np.mean(products), rel=1e-5)


def test_irm_has_nothing_to_say_about_single_images(rng):
  w = jnp.eye(3)
  labels = jnp.array([0, 1, 2])
  assert invariance(drawn(rng, 3, 4), labels, w) == 0


def test_coral_against_numpy(rng):
  features = drawn(rng, 7, 5)
  a, b = (np.asarray(features)[d == DOMAINS] for d in (0, 2))
  want = np.square(a.mean(0) - b.mean(0)).mean()
  want += np.square(np.cov(a.T) - np.cov(b.T)).mean()
  assert coral(features, W) == pytest.approx(want, rel=1e-5)


def test_coral_is_the_mean_over_pairs(rng):
  features = drawn(rng, 9, 5)
  w = jnp.asarray(np.eye(3)[np.arange(9) % 3], jnp.float32)
  pairs = [
    coral(features, w[:, np.array(pair)])
    for pair in itertools.combinations(range(3), 2)
  ]
  # A pair alone: the third domain's images belong to no domain.
  assert coral(features, w) == pytest.approx(np.mean(pairs), rel=1e-5)


def kernel(x, y):
  square = np.square(x - y).sum()
  return sum(np.exp(-(10.0**power) * square) for power in range(-3, 4))


def test_mmd_against_loops(rng):
  features = drawn(rng, 7, 5)
  a, b = (np.asarray(features, float)[d == DOMAINS] for d in (0, 2))
  mean = lambda xs, ys: np.mean([kernel(x, y) for x in xs for y in ys])
  want = mean(a, a) + mean(b, b) - 2 * mean(a, b)
  assert mmd(features, W) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("penalty", [coral, mmd])
def test_equal_domains_have_no_penalty_and_domains_apart_have_one(penalty, rng):
  half = drawn(rng, 4, 5)
  features = jnp.concatenate([half, half])
  w = jnp.asarray(np.eye(3)[np.repeat([0, 2], 4)], jnp.float32)
  assert abs(penalty(features, w)) < 1e-5
  apart = jnp.concatenate([half, half + 2])
  assert penalty(apart, w) > 0.5


@pytest.mark.parametrize("penalty", [coral, mmd])
def test_one_domain_alone_has_no_penalty_and_no_gradient(penalty, rng):
  w = jnp.zeros((7, 3)).at[:, 1].set(1.0)
  value, gradient = jax.jit(jax.value_and_grad(penalty))(drawn(rng, 7, 5), w)
  assert value == 0
  assert not gradient.any()


@pytest.mark.parametrize("penalty", [coral, mmd])
def test_an_empty_domain_keeps_the_gradient_finite(penalty, rng):
  gradient = jax.jit(jax.grad(penalty))(drawn(rng, 7, 5), W)
  assert jnp.isfinite(gradient).all()
  assert gradient.any()


def test_the_weight_rises_from_zero():
  steps = [penalties.rise(jnp.array(s), 8.0) for s in (0, 2, 8, 100)]
  assert [float(s) for s in steps] == [0, 0.25, 1, 1]
  assert penalties.rise(jnp.array(0), 0.0) == 1


def test_groupdro_raises_the_weight_of_a_large_loss_by_hand():
  q = jnp.array([0.5, 0.3, 0.2])
  losses = jnp.array([1.0, 2.0, 0.0])
  new = groupdro.reweigh(q, losses, jnp.array([True, True, True]), 0.5)
  want = np.array([0.5 * np.exp(0.5), 0.3 * np.exp(1.0), 0.2])
  np.testing.assert_allclose(new, want / want.sum(), rtol=1e-6)
  assert new.sum() == pytest.approx(1)


def test_groupdro_leaves_the_weight_of_an_absent_domain():
  q = jnp.array([0.5, 0.3, 0.2])
  losses = jnp.array([1.0, 0.0, 3.0])
  new = groupdro.reweigh(q, losses, jnp.array([True, False, True]), 0.5)
  assert new[1] == q[1]
  assert new.sum() == pytest.approx(1)
  assert new[2] / new[0] == pytest.approx(0.4 * np.exp(1.0))


def test_groupdro_survives_a_huge_loss():
  q, losses = jnp.full(2, 0.5), jnp.array([1e6, 0.0])
  new = groupdro.reweigh(q, losses, losses >= 0, 1.0)
  assert new.tolist() == [1, 0]
