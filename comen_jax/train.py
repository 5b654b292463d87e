"""The story of a run: data, then for each stage prepare and epochs, then test.

This file knows stages, not methods. Work comes in units: one `prepare` or one
epoch each. After every unit, its record is on disk and a checkpoint is being
saved. A run that was stopped goes on at the first unit without a checkpoint. If
SIGTERM stopped it, it goes on within the epoch.
"""

import time
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from comen_jax import config as config_lib
from comen_jax import stopping, variants
from comen_jax.errors import Stopped
from comen_jax.experiment import Experiment, build
from comen_jax.process import agreement
from comen_jax.run import (
  analysis,
  console,
  discovered,
  finite,
  plan,
  provenance,
  selection,
)
from comen_jax.run.checkpointing import Checkpoints
from comen_jax.run.disk_errors import reported
from comen_jax.run.interruption import Interruption
from comen_jax.run.plan import Unit
from comen_jax.run.progress import Progress
from comen_jax.run.workdir import Workdir
from comen_jax.train_state import TrainState

_NO_CANDIDATE = -1.0  # Rank of a checkpoint that cannot be chosen.


@reported
def train_and_evaluate(config: ConfigDict, workdir: str) -> dict[str, Any]:
  """Trains, or goes on training, in `workdir`; returns what was measured."""
  with agreement.alike():
    config_lib.check(config)
    experiment = build(config)
  with Workdir(workdir, config.to_dict(), experiment.identity) as run:
    if not run.result():
      run.lock()
    if result := run.result():
      console.say(f"{run.path} is finished; nothing to do.")
      measured = result["measured"]
    else:
      measured = _run(config, experiment, run)
  console.results(measured)
  return measured


def _run(
  config: ConfigDict, experiment: Experiment, run: Workdir
) -> dict[str, Any]:
  """Does the units that are left, then tests -> what was measured."""
  origin = provenance.collect()  # Now, before the checkout can change.
  start = time.monotonic()
  checkpoints = Checkpoints(run.checkpoints)
  done, state = checkpoints.resume(experiment.init())
  run.resume(done, int(state.step), config.logging.tensorboard)
  units = plan.units(experiment.method.stages)
  console.introduce(experiment, state.params, run.path, done, len(units))

  progress = Progress(
    units[done:], experiment.steps_per_epoch, config.logging.every
  )
  try:
    with checkpoints, progress:
      state = _train(
        experiment, run, checkpoints, state, units[done:], progress
      )
    tested = _test(experiment, run, checkpoints, state)
  except Stopped as stop:
    steps = run.records[-1]["step"] if run.records else 0
    raise (stop if stop.after else Stopped(f"step {steps}")) from None
  checkpoints.close()
  measured = {
    **experiment.setting,
    **selection.figures_of(run.records, tested),
  }
  origin |= {
    "seconds_of_this_start": time.monotonic() - start,
    "resumed_at_unit": done,
  }
  row = variants.name_of(config.to_dict())
  run.finish({"measured": measured, "provenance": origin, "row": row})
  console.say(
    f"{origin['seconds_of_this_start']:.0f} s; all files in {run.path}"
  )
  return measured


def _train(
  experiment: Experiment,
  run: Workdir,
  checkpoints: Checkpoints,
  state: TrainState,
  units: list[Unit],
  progress: Progress,
) -> TrainState:
  """Does the units that are left -> the last state."""
  interruption = Interruption(run.path)
  if units:
    state = interruption.restore(units[0].number, state)
  for unit in units:
    begin = time.monotonic()
    if unit.epoch is None:  # If it is stopped, it is done again: no harm.
      progress.begin(unit)
      state, report = experiment.prepare(state, unit.stage_number)
      found, rank = discovered.record(report, experiment.dataset), _NO_CANDIDATE
    with stopping.held():
      if unit.epoch is not None:
        state, found, rank = _epoch(
          experiment, state, unit, progress, interruption
        )
      record = {
        "unit": unit.number,
        "stage": unit.stage.name,
        "kind": unit.kind,
        "step": int(state.step),
        **found,
        "seconds": time.monotonic() - begin,
      }
      progress.unit_done(unit, record)
      finite.check_state(state)
      # The record comes first: a checkpoint relies on the records before it.
      run.log(record)
      checkpoints.save(unit.number + 1, state, rank)
      interruption.unit_done(unit.number)
  with stopping.held():  # The last checkpoint is being written.
    checkpoints.wait()
    interruption.remove()
  return state


def _epoch(
  experiment: Experiment,
  state: TrainState,
  unit: Unit,
  progress: Progress,
  interruption: Interruption,
) -> tuple[TrainState, dict[str, Any], float]:
  """Trains for one epoch -> (state, its record, rank of its checkpoint).

  If it is stopped, the steps so far are saved.
  """
  step = experiment.train_steps[unit.stage_number]
  history = interruption.history(unit.number)
  progress.begin(unit, len(history))
  watch = finite.Watch(unit, int(state.step) - len(history))
  try:
    for batch in experiment.train_batches(unit.run_epoch, len(history)):
      state, values = step(state, batch, experiment.key)
      history.append(values)
      watch.step(history)
      progress.step(unit, history)
    means = _means(watch.end(history))
    found = _diagnose(experiment, state, unit)
    scores, rank = _validate(experiment, state, unit.run_epoch)
  except Stopped:
    interruption.save(unit.number, state, history)
    raise Stopped(f"step {int(state.step)}") from None
  return state, {"epoch": unit.run_epoch + 1, **means, **found, **scores}, rank


def _means(history: list[dict[str, Any]]) -> dict[str, float]:
  """Means of the metrics of an epoch's steps."""
  means = {
    name: float(np.mean([np.float64(h[name]) for h in history]))
    for name in history[0]
  }
  return means


def _diagnose(
  experiment: Experiment, state: TrainState, unit: Unit
) -> dict[str, float]:
  """Measures the last batch of an epoch, if the stage asks for it."""
  diagnose = experiment.diagnose_steps[unit.stage_number]
  if not diagnose:
    return {}
  last = experiment.steps_per_epoch - 1
  (batch,) = experiment.train_batches(unit.run_epoch, last)
  found = jax.device_get(diagnose(state, batch, experiment.key))
  return {name: float(value) for name, value in found.items()}


def _validate(
  experiment: Experiment, state: TrainState, epoch: int
) -> tuple[dict[str, float], float]:
  """Scores of an epoch, and the rank of its checkpoint.

  The target is tested only for the oracle, and the rank does not depend on it.
  """
  val = experiment.evaluate(state, experiment.split.val_rows)
  scores = {
    "val_accuracy": selection.accuracy(val),
    "val_loss": float(val.loss.compute()),
  }
  epochs = experiment.setting["epochs"]
  if epoch < epochs - experiment.candidate_epochs:
    return scores, _NO_CANDIDATE
  scores["candidate"] = True
  if experiment.oracle:
    scores["target_accuracy"] = _target_accuracy(experiment, state)
  return scores, selection.rank(val, epoch)


def _target_accuracy(experiment: Experiment, state: TrainState) -> float:
  rows = experiment.split.target_rows
  return selection.accuracy(experiment.evaluate(state, rows))


def _test(
  experiment: Experiment,
  run: Workdir,
  checkpoints: Checkpoints,
  state: TrainState,
) -> dict[int, float]:
  """Tests the chosen and the last epoch -> target accuracy by epoch.

  It also writes the arrays and figures of the chosen epoch.
  """
  console.say(f"testing on {experiment.split.target} ...")
  last, chosen = selection.last(run.records), selection.best(run.records)
  tested = {last["epoch"]: _target_accuracy(experiment, state)}
  if chosen["epoch"] != last["epoch"]:
    state = checkpoints.restore(chosen["unit"] + 1, experiment.init())
    tested[chosen["epoch"]] = _target_accuracy(experiment, state)
  arrays = analysis.analyse(
    partial(experiment.outputs, state),
    experiment.dataset,
    experiment.split,
    experiment.method.describe(state),
  )
  setting = experiment.setting
  title = (
    f"{setting['dataset']}, target {setting['target']}, {setting['method']}"
  )
  run.picture(arrays, title)
  run.give_examples(experiment.dataset, experiment.split)
  return tested
