"""What holds for every method of the registry; a new one is tested at once.

Each method is trained for two steps per stage on the digits CNN, as if these
were the last epochs of a run.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from every_method import LABELLED, NAMES, each, make_experiment
from golden_helpers import made_dataset

from comen_jax.data.dataset import Dataset, leave_one_out
from comen_jax.data.sources import Sources
from comen_jax.experiment import Experiment
from comen_jax.methods.registry import METHODS
from comen_jax.run.checkpointing import Checkpoints

pytestmark = pytest.mark.usefixtures("plain_convolutions")


class Unit(NamedTuple):
  """A prepare or a step of a stage, and the states around it, as numpy.

  Attributes:
    stage: number of the stage.
    epoch: epoch of the run.
    step: number of the step in the epoch; None for a prepare.
    before: the state before.
    after: the state after.
    metrics: what a step logs.
  """

  stage: int
  epoch: int
  step: int | None
  before: Any
  after: Any
  metrics: dict[str, float]


def run_unit(
  experiment: Experiment, stage: int, epoch: int, step: int | None, state: Any
):
  """The state after a prepare or step, and what the step logs."""
  if step is None:
    return experiment.prepare(state, stage)[0], {}
  batch = list(experiment.train_batches(epoch))[step]
  return experiment.train_steps[stage](state, batch, experiment.key)


def place(experiment: Experiment, state: Any) -> Any:
  return jax.device_put(state, experiment.shardings.replicated)


def host(tree: Any) -> Any:
  # Copies: a step reuses the memory of its state.
  return jax.tree.map(np.array, tree)


class Trained(NamedTuple):
  """One epoch of every stage, two steps, after what it prepares."""

  experiment: Experiment
  units: list[Unit]


@functools.cache
def trained(name: str) -> Trained:
  experiment = make_experiment(name, made_dataset())
  stages, per_epoch = experiment.method.stages, experiment.steps_per_epoch
  # In the first epoch the weights that rise, as MMLD's, are still 0.
  first = experiment.setting["epochs"] - len(stages)
  state, units = host(experiment.init()), []
  state = state.replace(step=np.array(first * per_epoch, np.int32))
  for number, stage in enumerate(stages):
    for step in (*([None] if stage.prepare else []), *range(per_epoch)):
      where, before = (number, first + number, step), state
      after = run_unit(experiment, *where, place(experiment, before))
      state, metrics = host(after)
      units.append(Unit(*where, before, state, metrics))
  return Trained(experiment, units)


def poisoned(domains: bool) -> Dataset:
  """Another target; if `domains`, also other domains of the source images."""
  dataset = made_dataset()
  rng = np.random.default_rng(7)
  target = np.flatnonzero(dataset.domains == 3)  # s, the default target.
  images, labels = dataset.images.copy(), dataset.labels.copy()
  images[target] = rng.integers(0, 256, images[target].shape)
  labels[target] = 0
  of_rows = dataset.domains.copy()
  if domains:
    rows = np.flatnonzero(of_rows != 3)
    of_rows[rows] = rng.permutation(of_rows[rows])
  return dataclasses.replace(
    dataset, images=images, labels=labels, domains=of_rows
  )


def on(experiment: Experiment, dataset: Dataset) -> Experiment:
  """The same experiment, with its compiled steps, on other data."""
  split = leave_one_out(dataset, "s")
  batch_size, rows = experiment.sizes.evaluation, experiment.shardings.rows
  labels = experiment.method.domain_labels
  return experiment._replace(
    dataset=dataset,
    split=split,
    sources=Sources(dataset, split, batch_size, rows, labels),
  )


def unequal(one: Any, other: Any) -> list[str]:
  """Paths of the leaves of two states that differ in type or in any bit."""
  bits = lambda leaf: (leaf.dtype, leaf.shape, leaf.tobytes())
  return [
    jax.tree_util.keystr(path)
    for (path, a), b in zip(
      jax.tree_util.tree_leaves_with_path(one),
      jax.tree.leaves(other),
      strict=True,
    )
    if bits(a) != bits(b)
  ]


def differences(experiment: Experiment, units: list[Unit]) -> list[str]:
  """Leaves that differ when units are repeated, each from its old state.

  First steps are left out, to save time.
  """
  found = []
  for unit in (u for u in units if u.step != 0):
    state = place(experiment, unit.before)
    again, _ = run_unit(experiment, *unit[:3], state)
    found += [
      f"{unit.stage}/{unit.step}{path}"
      for path in unequal(unit.after, host(again))
    ]
  return found


@pytest.mark.parametrize("name", each(NAMES))
def test_it_learns_and_all_stays_finite(name):
  experiment, units = trained(name)
  first, last = units[0].before, units[-1].after
  for leaf in jax.tree.leaves(last):
    if np.issubdtype(leaf.dtype, np.floating):
      assert np.isfinite(leaf).all()
  assert all(np.isfinite(v) for u in units for v in u.metrics.values())
  assert all("loss" in u.metrics for u in units if u.step is not None)
  moved = jax.tree.map(
    lambda a, b: not np.array_equal(a, b),
    first.params["backbone"],
    last.params["backbone"],
  )
  assert all(jax.tree.leaves(moved["conv1"]))
  assert last.step == experiment.setting["epochs"] * experiment.steps_per_epoch


@pytest.mark.parametrize("name", each(NAMES))
def test_what_it_may_not_read_does_not_matter(name):
  experiment, units = trained(name)
  labels = METHODS[name].domain_labels
  assert experiment.method.domain_labels == labels
  other = on(experiment, poisoned(domains=not labels))
  assert differences(other, units) == []


@pytest.mark.parametrize("name", each(NAMES))
def test_it_goes_on_from_a_checkpoint_bit_for_bit(name, tmp_path):
  experiment, units = trained(name)
  last = units[-1]
  checkpoints = Checkpoints(tmp_path)
  checkpoints.save(1, place(experiment, last.after), rank=0.0)
  checkpoints.close()
  checkpoints = Checkpoints(tmp_path)
  # Into a first state, as `train` does at the next start.
  done, state = checkpoints.resume(experiment.init())
  checkpoints.close()
  assert done == 1
  assert unequal(last.after, host(state)) == []
  go_on = lambda state: host(run_unit(experiment, *last[:3], state)[0])
  never_stopped = go_on(place(experiment, last.after))
  assert unequal(never_stopped, go_on(state)) == []


@pytest.mark.parametrize("name", LABELLED)
def test_a_method_marked_so_does_use_domain_labels(name):
  experiment, units = trained(name)
  assert differences(on(experiment, poisoned(domains=True)), units) != []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_eight_devices_compute_what_one_does(name):
  eight = make_experiment(name, made_dataset(), devices=8)
  for unit in trained(name).units:
    after, _ = run_unit(eight, *unit[:3], place(eight, unit.before))
    for (path, a), b in zip(
      jax.tree_util.tree_leaves_with_path(unit.after),
      jax.tree.leaves(host(after)),
    ):
      where = f"{unit.stage}/{unit.step}{jax.tree_util.keystr(path)}"
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=where)
