"""Shows the runs that are trained at a time.

On a terminal there is a bar for each job and one for all runs. Without one, a
line per epoch begins with the name of its run.
"""

import contextlib

from rich.progress import BarColumn, TextColumn
from rich.table import Column

from comen_jax.run import console
from comen_jax.terminal import screen
from comen_jax.terminal.pace import Pace, duration

_BAR = 12  # Columns of a bar: names and losses say more.


class Board:
  """The bars of a sweep; use it as a context, so that they are closed."""

  def __init__(self, jobs: int, runs: int):
    self._runs, self._ended = runs, 0
    self._done = [0.0] * jobs  # Shares of the runs that are being trained.
    self._pace = Pace(runs)
    self._opened = contextlib.ExitStack()
    self._bars = None

  def __enter__(self) -> "Board":
    if found := screen.find(["stdout"]):
      cut = lambda ratio: Column(no_wrap=True, overflow="ellipsis", ratio=ratio)
      self._bars = self._opened.enter_context(
        screen.bars(
          found,
          TextColumn("{task.description}", markup=False, table_column=cut(5)),
          BarColumn(_BAR),
          TextColumn("{task.percentage:>3.0f} %"),
          TextColumn(" {task.fields[text]}", markup=False, table_column=cut(3)),
        )
      )
      self._tasks = [
        self._bars.add_task("", total=1.0, text="") for _ in self._done
      ]
      self._all = self._bars.add_task("all runs", total=self._runs, text="")
      self._count()
    return self

  def __exit__(self, *_: object) -> None:
    self._opened.close()
    self._bars = None

  def begin(self, job: int, name: str) -> None:
    """Shows that a job begins a run."""
    if self._bars:
      task = self._tasks[job]
      self._bars.reset(task, description=name, completed=0, text="")

  def news(
    self, job: int, name: str, kind: str, text: str, done: float
  ) -> None:
    """Shows what a worker tells; see `console.listen`."""
    if kind == "warning":
      console.warn(f"{name}: {text}")
    elif self._bars:
      self._bars.update(self._tasks[job], completed=done, text=text)
      self._done[job] = done
      self._count()
    elif kind == "epoch":
      console.say(f"{name}: {text}")

  def end(self, job: int) -> None:
    """Counts a run that has ended."""
    self._ended += 1
    self._done[job] = 0.0
    self._pace.advance()
    if self._bars:
      self._bars.update(self._tasks[job], text="")
      self._count()

  def _count(self) -> None:
    """Shows how many runs have ended, and the time left."""
    text = f"{self._ended}/{self._runs}"
    if seconds := self._pace.seconds_left():
      text += f", {duration(seconds)} left"
    completed = self._ended + sum(self._done)
    self._bars.update(self._all, completed=completed, text=text)
