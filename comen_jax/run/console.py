"""What a person sees: a header, a bar per stage, a table at the end.

Without a terminal, one plain line per epoch replaces the bar.
"""

import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import clu.parameter_overview
import jax
from tqdm import tqdm

from comen_jax.experiment import Experiment
from comen_jax.run.plan import Unit

# Is called with (kind, text, done): "warning", "epoch" or "step", what to show,
# and the share of the run's epochs that are done.
Listener = Callable[[str, str, float], None]
_listeners: list[Listener] = []
_STEP_SECONDS = 1.0  # Between two calls for steps.


def listen(listener: Listener) -> None:
  """Has `listener` called with all warnings and progress of this process."""
  _listeners.append(listener)


def say(text: str) -> None:
  """Prints a line for the user, from process 0, beside any bar."""
  if jax.process_index() == 0:
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


def warn(text: str) -> None:
  say(f"WARNING: {text}")
  _tell("warning", text, 0.0)


def _tell(kind: str, text: str, done: float) -> None:
  for listener in _listeners:
    listener(kind, text, done)


def introduce(
  experiment: Experiment,
  params: Any,
  workdir: pathlib.Path,
  units_done: int,
  units: int,
) -> None:
  """Says what is about to be trained, on what data and devices."""
  split, dataset = experiment.split, experiment.dataset
  setting, weights = experiment.setting, experiment.weights
  for notice in filter(None, (dataset.notice, experiment.sizes.notice)):
    say(notice)
  counts = f"{len(split.train_rows):,} training, {len(split.val_rows):,} val"
  stages = ", ".join(f"{s.name} {s.epochs}" for s in experiment.method.stages)
  devices = jax.devices()
  lines = {
    "devices": f"{len(devices)} x {devices[0].device_kind}"
    f" ({devices[0].platform}), {jax.process_count()} process(es)",
    "data set": f"{dataset.name} (manifest {dataset.manifest[:12]})",
    "sources": f"{', '.join(split.sources)} ({counts} images, mixed)",
    "target": f"{split.target} ({len(split.target_rows):,} images, unseen)",
    "method": f"{setting['method']}, norm {setting['norm']},"
    f" seed {setting['seed']}; epochs: {stages}",
    "weights": weights.summary() if weights else "none: a random start",
    "workdir": str(workdir),
    "parameters": f"{clu.parameter_overview.count_parameters(params):,}",
  }
  say("\n".join(f"{name:>11}  {text}" for name, text in lines.items()))
  if experiment.method.domain_labels:
    warn("domain labels are used: an upper bound, not a result")
  if weights and weights.warning():
    warn(weights.warning())
  if units_done:
    say(f"resuming after {units_done} of {units} units of work")


class Progress:
  """Progress of a run: one bar per stage, in steps, with ETA and losses.

  Use it as a context, so that the bar is closed however the run ends.
  """

  def __init__(self, units: list[Unit], steps_per_epoch: int, every: int):
    """Starts the clock.

    Args:
      units: the units that are left.
      steps_per_epoch: number of training steps of an epoch.
      every: number of steps between two updates of the losses.
    """
    self._steps_per_epoch, self._every = steps_per_epoch, every
    self._eta = Eta(sum(unit.epoch is not None for unit in units))
    self._shown = jax.process_index() == 0 and sys.stderr.isatty()
    self._bar = tqdm(disable=True)
    self._epochs = units[-1].run_epoch + 1 if units else 1
    self._told = time.monotonic()

  def __enter__(self) -> "Progress":
    return self

  def __exit__(self, *_: object) -> None:
    self._bar.close()

  def step(self, unit: Unit, history: list[dict[str, Any]]) -> None:
    """Counts a step; `history` has the metrics of the epoch's steps so far."""
    if _listeners and time.monotonic() - self._told > _STEP_SECONDS:
      self._told = time.monotonic()
      epochs = unit.run_epoch + len(history) / self._steps_per_epoch
      text = f"{unit.stage.name} {_short(history[max(0, len(history) - 3)])}"
      _tell("step", text, epochs / self._epochs)
    if not self._shown:
      return
    if self._bar.disable:
      self._open(unit, len(history) - 1)
    self._bar.update()
    if len(history) % self._every == 0:
      # Metrics two steps old: reading the newest would stop the pipeline.
      self._losses(history[max(0, len(history) - 3)])

  def unit_done(self, unit: Unit, record: dict[str, Any]) -> None:
    """Shows an epoch's record: on the bar, or in a line without a terminal."""
    if unit.epoch is None:
      return
    seconds_left = self._eta.tick()
    line = (
      f"{unit.stage.name} epoch {unit.epoch + 1}/{unit.stage.epochs} "
      f" {_short(record)}  {record['seconds']:.1f} s,"
      f" ETA {clock(seconds_left)}"
    )
    _tell("epoch", line, (unit.run_epoch + 1) / self._epochs)
    if not self._shown:
      say(line)
      return
    self._losses(record)
    if unit.epoch == unit.stage.epochs - 1:
      self._bar.close()
      self._bar = tqdm(disable=True)

  def _open(self, unit: Unit, steps: int) -> None:
    self._bar = tqdm(
      total=unit.stage.epochs * self._steps_per_epoch,
      initial=unit.epoch * self._steps_per_epoch + steps,
      desc=f"{unit.stage.name:9}",
      unit="step",
      dynamic_ncols=True,
    )

  def _losses(self, metrics: dict[str, Any]) -> None:
    self._bar.set_postfix_str(_short(metrics), refresh=False)


def latent_domains(found: dict[str, Any]) -> None:
  """Prints one line on the discovered domains."""
  sizes = ", ".join(map(str, found["domain_sizes"]))
  nmi = found.get("nmi_domain")
  with_domain = "" if nmi is None else f" true domain {nmi:.3f},"
  say(
    f"latent domains: sizes {sizes}; effective"
    f" {found['effective_domains']:.2f}; NMI with{with_domain} class"
    f" {found['nmi_class']:.3f} (evaluation only)"
  )


def results(measured: dict[str, Any]) -> None:
  """Prints the short table at the end of a run."""
  percent = lambda name: f"{100 * measured[name]:.2f} %"
  rows = {
    "data set": f"{measured['dataset']}, target {measured['target']}",
    "source validation": f"{percent('val_accuracy')}"
    f" (epoch {measured['selected_epoch']})",
    "target": percent("target_accuracy"),
    "target, last epoch": percent("target_accuracy_last"),
  }
  if measured["target_accuracy_oracle"] is not None:
    rows["target, oracle"] = (
      f"{percent('target_accuracy_oracle')} (chosen by looking at the target)"
    )
  if measured["domain_sizes"]:
    sizes = ", ".join(map(str, measured["domain_sizes"]))
    effective = f"{measured['effective_domains']:.2f}"
    rows["latent domains"] = f"{sizes} images (effective number {effective})"
  if measured["nmi_domain"] is not None:
    rows["NMI, true domain"] = f"{measured['nmi_domain']:.3f}"
  width = max(map(len, rows))
  rule = "-" * (width + 2 + max(map(len, rows.values())))
  lines = (f"{name:<{width}}  {text}" for name, text in rows.items())
  say("\n".join([rule, *lines, rule]))


class Eta:
  """Estimates the seconds left from the epochs since this start."""

  def __init__(self, epochs_left: int):
    self._left, self._done, self._start = epochs_left, 0, time.monotonic()

  def tick(self) -> float:
    self._done += 1
    each = (time.monotonic() - self._start) / self._done
    return each * (self._left - self._done)


def clock(seconds: float) -> str:
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  text = f"{minutes:02}:{seconds:02}"
  return f"{hours}:{text}" if hours else text


def _short(metrics: dict[str, Any]) -> str:
  shown = (n for n in metrics if n.startswith("loss") or n in _SHOWN)
  return "  ".join(f"{_SHOWN.get(n, n)} {float(metrics[n]):.3f}" for n in shown)


_SHOWN = {
  "effective_domains": "domains",
  "domain_agreement": "agree",
  "val_accuracy": "val",
}
