"""What a method is given: the backbone's variables, views, steps per epoch."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_helpers import made_experiment

from comen_jax.methods import deepall, registry
from comen_jax.methods.base import Method, Report, Stage


class Options(NamedTuple):
  """The method of these tests has no options."""


@pytest.fixture
def given(monkeypatch):
  """Registers a method "keeper" that remembers all that it is given."""
  tasks = []

  def create(task, options):
    tasks.append(task)
    copy = lambda key, variables: ({}, jax.tree.map(jnp.copy, variables))
    return deepall.create(task, options)._replace(init=copy)

  entry = registry.Entry(create, Options, "batch")
  monkeypatch.setitem(registry.METHODS, "keeper", entry)
  return tasks


def test_init_sees_the_variables_of_the_backbone(given):
  experiment = made_experiment("keeper")
  state = experiment.init()
  jax.tree.map(
    np.testing.assert_array_equal,
    state.memory,
    {"params": state.params["backbone"], "batch_stats": state.batch_stats},
  )
  assert state.memory["batch_stats"].keys() == {f"norm{i}" for i in range(1, 5)}
  batch = next(experiment.train_batches(0))
  after, _ = experiment.train_steps[0](state, batch, experiment.key)
  # The copy is its own memory: a donated step leaves it as it was.
  first = experiment.init()
  jax.tree.map(np.testing.assert_array_equal, after.memory, first.memory)


def test_a_task_says_how_long_an_epoch_is_and_what_pixels_are(given):
  experiment = made_experiment("keeper")
  (task,) = given
  assert task.steps_per_epoch == experiment.steps_per_epoch == 2
  assert task.views is experiment.views


def test_each_prepare_of_an_epoch_has_the_key_of_its_step(monkeypatch):
  """So a resumed run prepares what the run without a stop prepared."""

  def draw(state, sources, feature_step, key):
    drawn = jax.random.uniform(key)
    return state.replace(memory=drawn), Report({"drawn": float(drawn)})

  def create(task, options):
    stage = Stage("train", task.epochs, None, draw, prepare_each_epoch=each)
    return Method((stage,), lambda *_: ({}, jnp.zeros(())), None)

  for each in (True, False):
    entry = registry.Entry(create, Options)
    monkeypatch.setitem(registry.METHODS, "keeper", entry)
    experiment = made_experiment("keeper")
    state = experiment.init()
    later = state.replace(step=state.step + 2)
    values = [
      experiment.prepare(s, 0)[1].metrics["drawn"]
      for s in (state, later, state, later)
    ]
    assert values[:2] == values[2:]
    assert (values[0] != values[1]) == each
