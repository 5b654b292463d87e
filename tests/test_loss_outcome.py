"""What a loss may return: a step says what is wrong with it, in one line."""

import types
from functools import partial

import jax
import jax.numpy as jnp
import pytest

from comen_jax.data.batches import Batch
from comen_jax.errors import UserError
from comen_jax.optimizer import sgd
from comen_jax.steps import train_step
from comen_jax.train_state import TrainState

SIZE = 4
TX = sgd(lambda step: 0.1, 0.9, 0.0)


def trace(loss):
  """Traces a step; nothing is compiled."""
  state = TrainState.create(
    params={"w": jnp.ones(3)},
    batch_stats={"mean": jnp.zeros(3)},
    memory={"count": jnp.zeros((), jnp.int32), "queue": jnp.zeros((2, 3))},
    tx=TX,
  )
  views = types.SimpleNamespace(train=lambda key, images: images)
  rows = jnp.zeros(SIZE, jnp.int32)
  batch = Batch(jnp.zeros((SIZE, 8, 8, 3)), rows, rows, rows)
  step = partial(train_step, loss=loss, tx=TX, scales={}, views=views)
  return jax.eval_shape(step, state, batch, jax.random.key(0))


def returning(loss=None, metrics=None, batch_stats=None, memory=None):
  """A loss that returns this, and else what it should."""

  def of(state, batch, key):
    each = state.params["w"].sum() * jnp.ones(SIZE)
    change = lambda new, old: old if new is None else new(old)
    return change(loss, each.mean()), (
      change(batch_stats, state.batch_stats),
      change(memory, state.memory),
      {"loss_cls": each.mean(), **(metrics or {})},
    )

  return of


def test_a_whole_outcome_keeps_the_form_of_the_state():
  state, metrics = trace(returning())
  assert state.memory["queue"].shape == (2, 3)
  assert set(metrics) == {"loss", "loss_cls"}


@pytest.mark.parametrize(
  ("changed", "text"),
  [
    ({"loss": lambda x: x * jnp.ones(SIZE)}, "the loss has shape (4,): return"),
    ({"metrics": {"each": jnp.ones(SIZE)}}, "each has shape (4,): return one"),
    (
      {"memory": lambda old: {"count": old["count"]}},
      "memory['queue'] is missing after the loss and float32[2, 3] before",
    ),
    (
      {"memory": lambda old: {**old, "more": jnp.ones(2)}},
      "memory['more'] is float32[2] after the loss and missing before it",
    ),
    (
      {"memory": lambda old: {**old, "count": jnp.zeros(())}},
      "memory['count'] is float32[] after the loss and int32[] before it",
    ),
    ({"batch_stats": lambda old: {}}, "running statistics['mean'] is mis"),
  ],
)
def test_what_training_cannot_go_on_with_is_one_line(changed, text):
  with pytest.raises(UserError) as caught:
    trace(returning(**changed))
  assert str(caught.value).startswith(text)
  assert "\n" not in str(caught.value)
