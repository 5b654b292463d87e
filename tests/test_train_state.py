"""The optimiser against torch's SGD, written out."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from comen_jax.optimizer import sgd, step_schedule
from comen_jax.train_state import TrainState


def _torch_like(params, gradient, rates, momentum, weight_decay):
  """As torch.optim.SGD documents it, in float64."""
  params = {k: np.array(v, np.float64) for k, v in params.items()}
  buffers = {}
  history = []
  for step, rate in enumerate(rates):
    for name, value in params.items():
      grad = gradient(name, value, step) + weight_decay * value
      if name in buffers:
        buffers[name] = momentum * buffers[name] + grad
      else:
        buffers[name] = grad
      params[name] = value - rate * buffers[name]
    history.append(dict(params))
  return history


def _params():
  rng = np.random.default_rng(0)
  return {
    "kernel": rng.normal(size=(3, 2)).astype(np.float32),
    "bias": rng.normal(size=2).astype(np.float32),
  }


def _gradient(name, value, step):
  return np.sin(3 * value + step) if name == "kernel" else value - 0.5 * step


def _run(tx, steps):
  params = jax.tree.map(jnp.asarray, _params())
  state = tx.init(params)

  @jax.jit
  def apply(params, state, grads):
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state

  history = []
  for step in range(steps):
    grads = {
      k: np.asarray(_gradient(k, np.asarray(v), step), np.float32)
      for k, v in params.items()
    }
    params, state = apply(params, state, grads)
    history.append(params)
  return history


@pytest.mark.parametrize(
  ("epochs", "rates"),
  [
    (5, [0.1] * 4 + [0.01] * 4 + [0.001] * 2),
    # A shortened run keeps its shape; the second drop falls on its end.
    (2, [0.1] * 2 + [0.01] * 2),
  ],
)
def test_sgd_is_torchs_across_drops_of_the_learning_rate(epochs, rates):
  # Decay as large as this tells at once whether it joins before momentum.
  schedule = step_schedule(0.1, (0.4, 0.8), 0.1, epochs, steps_per_epoch=2)
  tx = sgd(schedule, momentum=0.9, weight_decay=0.2)
  got = _run(tx, len(rates))
  want = _torch_like(_params(), _gradient, rates, 0.9, 0.2)
  for ours, theirs in zip(got, want):
    for name in theirs:
      np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-5, atol=2e-6)


def test_two_drops_at_the_same_epoch_are_both_made():
  # .4 and .5 of four epochs are both epoch 2.
  schedule = step_schedule(0.1, (0.4, 0.5), 0.1, epochs=4, steps_per_epoch=1)
  tx = sgd(schedule, momentum=0.0, weight_decay=0.0)
  got = _run(tx, 4)
  want = _torch_like(_params(), _gradient, [0.1, 0.1, 0.001, 0.001], 0, 0)
  np.testing.assert_allclose(got[-1]["bias"], want[-1]["bias"], rtol=1e-5)


def test_a_new_state_has_done_no_step():
  tx = sgd(step_schedule(0.1, (0.4,), 0.1, 5, 2), 0.9, 5e-4)
  state = TrainState.create(_params(), {"mean": np.zeros(2)}, (), tx)
  assert state.step == 0 and state.step.dtype == jnp.int32
  want = jax.tree.structure(tx.init(_params()))
  assert jax.tree.structure(state.opt_state) == want
