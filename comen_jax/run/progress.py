"""Progress of a run: a line that stays per epoch, and a bar below the lines.

Without a terminal, there are only the lines.
"""

import contextlib
import time
from typing import Any

import jax
from rich.progress import BarColumn, TaskProgressColumn, TextColumn

from comen_jax.run import console, epoch_line
from comen_jax.run.plan import Unit
from comen_jax.terminal import screen
from comen_jax.terminal.pace import Pace, duration

_PLAIN_WIDTH = 120  # Of a line without a terminal.
_STEP_SECONDS = 1.0  # Between two calls of listeners for steps.


class Progress:
  """Shows the units of a run, and tells the listeners of `console`.

  Use it as a context, so that the bar is closed however the run ends.
  """

  def __init__(self, units: list[Unit], steps_per_epoch: int, every: int):
    """Takes what is to be done.

    Args:
      units: the units that are left.
      steps_per_epoch: number of training steps of an epoch.
      every: number of steps between two updates of the loss.
    """
    self._steps_per_epoch, self._every = steps_per_epoch, every
    self._pace = Pace(sum(unit.epoch is not None for unit in units))
    self._epochs = units[-1].run_epoch + 1 if units else 1
    labels = [_label(unit) for unit in units if unit.epoch is not None]
    self._label_width = max(map(len, labels), default=0)
    self._told = time.monotonic()
    self._compiled = False
    self._opened = contextlib.ExitStack()
    self._bars = None

  def __enter__(self) -> "Progress":
    found = screen.find(["stdout"]) if jax.process_index() == 0 else None
    if found:
      columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(None),
        TaskProgressColumn("{task.percentage:3.0f} %", ""),
        TextColumn(" {task.fields[loss]}", markup=False),
        TextColumn(" {task.fields[left]}", markup=False),
      )
      self._bars = self._opened.enter_context(screen.bars(found, *columns))
    return self

  def __exit__(self, *_: object) -> None:
    self._opened.close()
    self._bars = None

  def begin(self, unit: Unit, steps: int = 0) -> None:
    """Shows that a unit begins; `steps` of its epoch may be done already."""
    if steps:
      self._pace.skip(steps / self._steps_per_epoch)
    name, total = _label(unit), self._steps_per_epoch
    if unit.epoch is None:
      name, total = f"preparing {unit.stage.name}", None
      console.say(f"{name} ...")
    if self._bars:
      for task in self._bars.task_ids:
        self._bars.remove_task(task)
      # Without a total, the bar only shows that there is work.
      self._task = self._bars.add_task(
        name, total=total, completed=steps, loss="", left=self._left()
      )

  def step(self, unit: Unit, history: list[dict[str, Any]]) -> None:
    """Counts a step; `history` has the metrics of the epoch's steps so far."""
    if self._compiled:
      self._pace.advance(1 / self._steps_per_epoch)
    else:  # This step took as long as no other will.
      self._compiled = True
      self._pace.skip(1 / self._steps_per_epoch)
    # Metrics two steps old: reading the newest would stop the pipeline.
    metrics = history[max(0, len(history) - 3)]
    if console.is_heard() and time.monotonic() - self._told > _STEP_SECONDS:
      self._told = time.monotonic()
      epochs = unit.run_epoch + len(history) / self._steps_per_epoch
      text = f"{_label(unit)}  {_loss(metrics)}"
      console.tell("step", text, epochs / self._epochs)
    if self._bars:
      changes = {"left": self._left()}
      if len(history) % self._every == 0:
        changes["loss"] = _loss(metrics)
      self._bars.update(self._task, completed=len(history), **changes)

  def unit_done(self, unit: Unit, record: dict[str, Any]) -> None:
    """Prints the line of an epoch; before it, what its new words mean."""
    if unit.epoch is None:
      return
    found = epoch_line.metrics(record)
    times = [duration(record["seconds"]), self._left()]
    tail = ", ".join(filter(None, times))
    head = f"{unit.stage.name} epoch {unit.epoch + 1}/{unit.stage.epochs}"
    line, shown = epoch_line.make(head, found, tail, _PLAIN_WIDTH)
    console.tell("epoch", line, (unit.run_epoch + 1) / self._epochs)
    if width := screen.width():
      head = f"{_label(unit):{self._label_width}}"
      line, shown = epoch_line.make(head, found, tail, width)
    for name in shown:
      if name in epoch_line.MEANINGS:
        console.explain(*epoch_line.MEANINGS[name])
    console.say(line)

  def _left(self) -> str:
    seconds = self._pace.seconds_left()
    return f"{duration(seconds)} left" if round(seconds or 0) else ""


def _label(unit: Unit) -> str:
  """Names an epoch: encode 7/30."""
  if unit.epoch is None:
    return unit.stage.name
  count = f"{unit.epoch + 1:{len(str(unit.stage.epochs))}}"
  return f"{unit.stage.name} {count}/{unit.stage.epochs}"


def _loss(metrics: dict[str, Any]) -> str:
  return f"loss {epoch_line.number(float(metrics['loss']))}"
