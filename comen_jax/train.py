"""The story of a run: data, then for each stage prepare and epochs, then test.

This file knows stages, not methods. Work comes in units: one `prepare` or one
epoch each. After every unit, its record is on disk and a checkpoint is being
saved. A run that was stopped goes on at the first unit without a checkpoint.
"""

import time
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from comen_jax import config as config_lib
from comen_jax import metrics, variants
from comen_jax.errors import UserError
from comen_jax.experiment import Experiment, build
from comen_jax.methods.base import Report
from comen_jax.run import analysis, console, plan, provenance, selection
from comen_jax.run.checkpointing import Checkpoints
from comen_jax.run.plan import Unit
from comen_jax.run.workdir import Workdir
from comen_jax.train_state import TrainState

_NO_CANDIDATE = -1.0  # Rank of a checkpoint that cannot be chosen.


def train_and_evaluate(config: ConfigDict, workdir: str) -> dict[str, Any]:
  """Trains, or goes on training, in `workdir`; returns what was measured."""
  config_lib.check(config)
  experiment = build(config)
  run = Workdir(workdir, config.to_dict(), experiment.identity)
  if not run.result():
    run.lock()
  if result := run.result():
    run.close()
    console.say(f"{run.path} is finished; nothing to do.")
    console.results(result["measured"])
    return result["measured"]

  origin = provenance.collect()  # Now, before the checkout can change.
  start = time.monotonic()
  state = experiment.init()
  checkpoints = Checkpoints(run.checkpoints)
  if done := checkpoints.latest():
    state = checkpoints.restore(done, state)
  run.resume(done, int(state.step), config.logging.tensorboard)
  units = plan.units(experiment.method.stages)
  console.introduce(experiment, state.params, run.path, done, len(units))

  progress = console.Progress(
    units[done:], experiment.steps_per_epoch, config.logging.every
  )
  with progress:
    for unit in units[done:]:
      begin = time.monotonic()
      state, found, rank = _do(experiment, state, unit, progress)
      record = {
        "unit": unit.number,
        "stage": unit.stage.name,
        "kind": unit.kind,
        "step": int(state.step),
        **found,
        "seconds": time.monotonic() - begin,
      }
      progress.unit_done(unit, record)
      # The record comes first: a checkpoint relies on the records before it.
      run.log(record)
      checkpoints.save(unit.number + 1, state, rank)
  checkpoints.wait()

  tested = _test(experiment, run, checkpoints, state)
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
  run.close()
  console.results(measured)
  console.say(
    f"{origin['seconds_of_this_start']:.0f} s; all files in {run.path}"
  )
  return measured


def _do(
  experiment: Experiment,
  state: TrainState,
  unit: Unit,
  progress: console.Progress,
) -> tuple[TrainState, dict[str, Any], float]:
  """Does one unit of work -> (state, its record, rank of its checkpoint)."""
  if unit.epoch is None:
    console.say(f"preparing {unit.stage.name} ...")
    state, report = experiment.prepare(state, unit.stage_number)
    return state, _record_of_prepare(experiment, report), _NO_CANDIDATE
  state, means = _epoch(experiment, state, unit, progress)
  scores, rank = _validate(experiment, state, unit.run_epoch)
  return state, {"epoch": unit.run_epoch + 1, **means, **scores}, rank


def _record_of_prepare(
  experiment: Experiment, report: Report
) -> dict[str, Any]:
  """The record of a `prepare`; latent domains are compared with true ones."""
  record = dict(report.metrics)
  warnings = list(report.warnings)
  if report.latent:
    rows, probs = report.latent
    dataset = experiment.dataset
    record |= metrics.latent_domains(
      probs, dataset.domains[rows], dataset.labels[rows]
    )
    console.latent_domains(record)
    warnings.append(
      metrics.collapse_warning(
        record["effective_domains"], record["domain_sizes"]
      )
    )
  for warning in filter(None, warnings):
    console.warn(warning)
  return record


def _epoch(
  experiment: Experiment,
  state: TrainState,
  unit: Unit,
  progress: console.Progress,
) -> tuple[TrainState, dict[str, float]]:
  """Passes over the source images once -> means of the steps' metrics."""
  step = experiment.train_steps[unit.stage_number]
  history = []
  for batch in experiment.train_batches(unit.run_epoch):
    state, values = step(state, batch, experiment.key)
    history.append(values)
    progress.step(unit, history)
  diagnose = experiment.diagnose_steps[unit.stage_number]
  found = diagnose(state, batch, experiment.key) if diagnose else {}
  history = jax.device_get(history)
  means = {
    name: float(np.mean([np.float64(h[name]) for h in history]))
    for name in history[0]
  }
  if not np.isfinite(means["loss"]):
    raise UserError(
      f"the loss of epoch {unit.run_epoch + 1} is {means['loss']}: lower"
      " learning_rate; the last good checkpoint is kept"
    )
  found = {name: float(v) for name, v in jax.device_get(found).items()}
  return state, means | found


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
  last, chosen = selection.last(run.records), selection.best(run.records)
  tested = {last["epoch"]: _target_accuracy(experiment, state)}
  if chosen["epoch"] != last["epoch"]:
    state = checkpoints.restore(chosen["unit"] + 1, experiment.init())
    tested[chosen["epoch"]] = _target_accuracy(experiment, state)
  arrays = analysis.analyse(
    partial(experiment.outputs, state), experiment.dataset, experiment.split
  ) | experiment.method.describe(state)
  setting = experiment.setting
  title = (
    f"{setting['dataset']}, target {setting['target']}, {setting['method']}"
  )
  run.picture(arrays, title)
  return tested
