"""The story of a run: data, then for each stage prepare and epochs, then test.

This file knows stages, not methods. Work comes in units, one `prepare` or one
epoch each; after every unit the log is on disk and a checkpoint is on its way,
and a run that was cut off goes on at the first unit that has none.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from comen_jax import (
  analysis,
  console,
  metrics,
  plan,
  provenance,
  selection,
  settings,
  sharding,
  steps,
)
from comen_jax.checkpointing import Checkpoints
from comen_jax.data import registry as data
from comen_jax.data.dataset import Dataset, Split, leave_one_out
from comen_jax.data.sources import Sources
from comen_jax.errors import UserError
from comen_jax.experiment import Experiment, make_init
from comen_jax.methods import METHODS
from comen_jax.network import build_network, shapes
from comen_jax.nn import pretrained
from comen_jax.stage import Task
from comen_jax.train_state import TrainState, sgd
from comen_jax.workdir import Workdir


def train_and_evaluate(config: ConfigDict, workdir: str) -> dict[str, Any]:
  """Trains, or goes on training, in `workdir`; returns what was measured."""
  settings.check(config)
  dataset = data.load(config.dataset, config.data_dir, config.store_size)
  split = leave_one_out(dataset, config.target)
  settings.check_split(config.batch_size, split)
  experiment = make_experiment(config, dataset, split, sharding.make())
  identity = {
    "dataset": dataset.name,
    "manifest": dataset.manifest,
    "target": split.target,
    "weights": experiment.weights.sha256 if experiment.weights else "",
  }
  run = Workdir(workdir, config.to_dict(), identity)
  if not run.result():
    run.lock()
  if result := run.result():
    run.close()
    console.say(f"{run.path} is finished; nothing to do.")
    console.results(result["measured"])
    return result["measured"]

  state = experiment.init()
  checkpoints = Checkpoints(run.checkpoints)
  if done := checkpoints.latest():
    state = checkpoints.restore(done, state)
  run.resume(done, int(state.step), config.logging.tensorboard)
  _introduce(config, experiment, state, run, done)

  origin = provenance.collect()  # Before the checkout can change under us.
  start = time.monotonic()
  compilations = _work(config, experiment, state, run, checkpoints, done)
  chosen = selection.best(run.records)["unit"] + 1
  state = checkpoints.restore(chosen, experiment.init())
  arrays = analysis.analyse(
    partial(experiment.outputs, state), dataset, split
  ) | experiment.method.describe(state)
  title = f"{dataset.name}, target {split.target}, {config.method}"
  run.picture(arrays, title)
  checkpoints.close()
  measured = {
    **identity,
    "sources": list(split.sources),
    "method": config.method,
    "norm": settings.norm(config),
    "domain_labels": experiment.method.domain_labels,
    "seed": config.seed,
    "epochs": config.epochs,
    "num_domains": config.num_domains,
    "target_images": len(split.target_rows),
    "chance": 1 / len(dataset.class_names),
    **selection.figures_of(run.records),
  }
  seconds = time.monotonic() - start
  origin |= {
    "seconds_of_this_start": seconds,
    "resumed_at_unit": done,
    "step_compilations": compilations,
  }
  run.finish({"measured": measured, "provenance": origin})
  run.close()
  console.results(measured)
  console.say(f"{seconds:.0f} s; all files in {run.path}")
  return measured


def make_experiment(
  config: ConfigDict,
  dataset: Dataset,
  split: Split,
  shardings: sharding.Shardings,
) -> Experiment:
  """Binds the config's values; below this, functions take values."""
  num_classes = len(dataset.class_names)
  size = config.image_size
  model, views = build_network(config, num_classes)
  outputs, variables = shapes(model, size)
  weights, report = {}, None
  if config.pretrained:
    weights, report = pretrained.read(config.pretrained, variables)
  task = Task(
    model=model,
    norm=model.norm,
    num_classes=num_classes,
    num_domains=config.num_domains,
    num_sources=len(split.sources),
    num_rows=len(dataset.labels),
    feature_dim=outputs.features.shape[-1],
    stage_epochs=settings.stage_epochs(config),
  )
  method = METHODS[config.method].create(task, **config[config.method])
  tx = sgd(
    config.learning_rate,
    tuple(config.lr_drops),
    config.lr_factor,
    config.momentum,
    config.weight_decay,
    config.epochs,
    len(split.train_rows) // config.batch_size,
  )
  key = jax.random.key(config.seed)
  return Experiment(
    dataset=dataset,
    split=split,
    sources=Sources(
      dataset,
      split,
      config.eval_batch_size,
      shardings.rows,
      method.domain_labels,
    ),
    method=method,
    views=views,
    tx=tx,
    key=jax.device_put(key, shardings.replicated),
    shardings=shardings,
    batch_size=config.batch_size,
    eval_batch_size=config.eval_batch_size,
    seed=config.seed,
    weights=report,
    init=make_init(model, method, tx, size, key, shardings.replicated, weights),
    eval_step=steps.jit_eval_step(shardings, model, views),
    feature_step=steps.jit_feature_step(shardings, model, views),
  )


def _work(
  config: ConfigDict,
  experiment: Experiment,
  state: TrainState,
  run: Workdir,
  checkpoints: Checkpoints,
  done: int,
) -> dict[str, int]:
  """Does the units that are left -> compilations of each stage's step."""
  units = plan.units(experiment.method.stages)
  eta = console.Eta(sum(u.epoch is not None for u in units[done:]))
  # All methods choose among the epochs of COMEN's last stage.
  first_candidate = config.epochs - settings.stage_epochs(config)[-1]
  compilations: dict[str, int] = {}
  step = bar = None
  for number, unit in list(enumerate(units))[done:]:
    stage = experiment.method.stages[unit.stage]
    begin = time.monotonic()
    record = {"unit": number, "stage": stage.name}
    rank = -1.0
    if unit.epoch is None:
      console.say(f"preparing {stage.name} ...")
      state, found = _prepare(experiment, state, unit.stage)
      record |= {"kind": "prepare", "step": int(state.step), **found}
    else:
      if step is None:
        step = experiment.train_step(stage)
        bar = console.StageBar(
          stage.name, stage.epochs, unit.epoch, experiment.steps_per_epoch
        )
      state, means = _epoch(
        experiment, state, step, unit.epochs_before, bar, config.logging.every
      )
      is_candidate = unit.epochs_before >= first_candidate
      scores, rank = _validate(
        experiment, state, unit.epochs_before, is_candidate
      )
      record |= {"kind": "epoch", "step": int(state.step)}
      record |= {"epoch": unit.epochs_before + 1, **means, **scores}
    record["seconds"] = time.monotonic() - begin
    if unit.epoch is not None:
      bar.epoch(unit.epoch, record, eta.tick())
    # The record first: a checkpoint vouches for the records before it.
    run.log(record)
    checkpoints.save(number + 1, state, rank)
    if unit.epoch == stage.epochs - 1:
      bar.close()
      compilations[stage.name] = step._cache_size()
      step = bar = None
  checkpoints.wait()
  return compilations


def _prepare(
  experiment: Experiment, state: TrainState, number: int
) -> tuple[TrainState, dict[str, Any]]:
  """A stage's `prepare`; its latent domains are compared with the true ones."""
  state, report = experiment.prepare(state, number)
  warnings = list(report.warnings)
  record = dict(report.metrics)
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
  return state, record


def _epoch(
  experiment: Experiment,
  state: TrainState,
  step: Callable,
  epoch: int,
  bar: console.StageBar,
  every: int,
) -> tuple[TrainState, dict[str, float]]:
  """One pass over the source images -> mean of each metric over its steps."""
  history = []
  for batch in experiment.train_batches(epoch):
    state, values = step(state, batch, experiment.key)
    history.append(values)
    bar.step()
    if len(history) % every == 0:
      # Two steps old: reading the newest would stop the pipeline.
      bar.losses(history[max(0, len(history) - 3)])
  history = jax.device_get(history)
  means = {
    name: float(np.mean([np.float64(h[name]) for h in history]))
    for name in history[0]
  }
  if not np.isfinite(means["loss"]):
    raise UserError(
      f"the loss of epoch {epoch + 1} is {means['loss']}: lower learning_rate;"
      " the last good checkpoint is kept"
    )
  return state, means


def _validate(
  experiment: Experiment, state: TrainState, epoch: int, is_candidate: bool
) -> tuple[dict[str, float], float]:
  """Scores of an epoch, and its rank among checkpoints.

  The target's accuracy is for the record only; the rank does not know it.
  """
  val = experiment.evaluate(state, experiment.split.val_rows)
  scores = {
    "val_accuracy": selection.accuracy(val),
    "val_loss": float(val.loss.compute()),
  }
  if not is_candidate:
    return scores, -1.0
  target = experiment.evaluate(state, experiment.split.target_rows)
  scores["target_accuracy"] = selection.accuracy(target)
  return scores, selection.rank(val, epoch)


def _introduce(
  config: ConfigDict,
  experiment: Experiment,
  state: TrainState,
  run: Workdir,
  done: int,
) -> None:
  """Tells what is about to be trained on what."""
  split, dataset = experiment.split, experiment.dataset
  if dataset.notice:
    console.say(dataset.notice)
  counts = f"{len(split.train_rows):,} training, {len(split.val_rows):,} val"
  stages = ", ".join(f"{s.name} {s.epochs}" for s in experiment.method.stages)
  weights = experiment.weights
  console.header(
    state.params,
    {
      "data set": f"{dataset.name} (manifest {dataset.manifest[:12]})",
      "sources": f"{', '.join(split.sources)} ({counts} images, mixed)",
      "target": f"{split.target} ({len(split.target_rows):,} images, unseen)",
      "method": f"{config.method}, norm {settings.norm(config)},"
      f" seed {config.seed}; epochs: {stages}",
      "weights": weights.summary() if weights else "none: a random start",
      "workdir": str(run.path),
    },
  )
  if experiment.method.domain_labels:
    console.warn("domain labels are used: an upper bound, not a result")
  if weights and weights.warning():
    console.warn(weights.warning())
  if done:
    total = len(plan.units(experiment.method.stages))
    console.say(f"resuming after {done} of {total} units of work")
