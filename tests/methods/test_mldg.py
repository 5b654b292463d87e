"""MLDG on a linear network: inner step, order of the gradient, choice."""

from functools import partial

import jax
import numpy as np
import pytest
from linear_net import LinearNet, domain_losses, made_batch, made_state

from comen_jax.methods import mldg
from comen_jax.methods.options.labelled import Mldg

BATCH = made_batch()
STATE = made_state()
THETA = STATE.params["backbone"]


def loss(theta, key, **options):
  """The loss as a function of the backbone, and the log."""
  value, (_, _, metrics) = mldg.meta(
    STATE.replace(params={"backbone": theta}),
    BATCH,
    key,
    model=LinearNet(),
    options=Mldg(**options),
    num_sources=3,
  )
  return value, metrics


def test_without_an_inner_step_it_is_the_weighted_mean_of_the_losses():
  found = domain_losses(THETA, BATCH)
  run = jax.jit(partial(loss, rate=0.0, weight=3.0))
  tests = set()
  for seed in range(8):
    value, metrics = run(THETA, jax.random.key(seed))
    test = min(found, key=lambda m: abs(found[m] - metrics["loss_meta_test"]))
    (train,) = found.keys() - {test}
    assert metrics["loss_meta_test"] == pytest.approx(
      float(found[test]), rel=1e-6
    )
    want = (found[train] + 3 * found[test]) / 4
    assert value == pytest.approx(float(want), rel=1e-6)
    tests.add(test)
  assert tests == {0, 2}  # Each of those that the batch has, never domain 1.


def by_hand(theta, test: int, rate: float, stop: bool):
  """F(theta) / 2 + G(theta - rate F'(theta)) / 2."""
  (train,) = {0, 2} - {test}
  of_train = lambda t: domain_losses(t, BATCH)[train]
  gradient = jax.grad(of_train)(theta)
  if stop:
    gradient = jax.lax.stop_gradient(gradient)
  stepped = jax.tree.map(lambda p, g: p - rate * g, theta, gradient)
  return (of_train(theta) + domain_losses(stepped, BATCH)[test]) / 2


@pytest.mark.parametrize("first_order", [False, True])
def test_gradient_goes_through_the_inner_step_unless_first_order(first_order):
  key = jax.random.key(0)
  run = jax.jit(
    jax.value_and_grad(
      partial(loss, rate=0.5, first_order=first_order), has_aux=True
    )
  )
  (value, _), gradient = run(THETA, key)
  found = [
    jax.jit(
      jax.value_and_grad(
        partial(by_hand, test=test, rate=0.5, stop=first_order)
      )
    )(THETA)
    for test in (0, 2)
  ]
  want, want_gradient = min(found, key=lambda f: abs(f[0] - value))
  assert value == pytest.approx(float(want), rel=1e-6)
  for one, other in zip(
    jax.tree.leaves(gradient), jax.tree.leaves(want_gradient)
  ):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
