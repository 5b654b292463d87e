"""Keeps count of a sweep's runs: what is left, done, failed, left to others."""

import pathlib
from typing import NamedTuple

from comen_jax.process import agreement
from comen_jax.run import console
from comen_jax.run.workdir import read_result
from comen_jax.sweep.grid import Run
from comen_jax.sweep.ledger import Ledger
from comen_jax.terminal.pace import Pace, duration


class Outcome(NamedTuple):
  """How a run ended.

  Attributes:
    kind: "done"; "failed"; or "busy", if another job trains the run.
    reason: one line that says why it failed.
  """

  kind: str
  reason: str = ""


class Tally:
  """Counts runs, tells the user, and is the only one to write the ledger.

  Attributes:
    folder: folder of the sweep.
    left: runs that were not finished at the start.
  """

  def __init__(self, folder: pathlib.Path, runs: list[Run], ledger: Ledger):
    self.folder, self._ledger = folder, ledger
    results = agreement.from_first(
      lambda: [read_result(place(folder, run)) for run in runs]
    )
    self.left: list[Run] = []
    for run, result in zip(runs, results):
      if result:
        ledger.add(run.name, run.row, result)
      else:
        self.left.append(run)
    self._all, self._begun = len(runs), len(runs) - len(self.left)
    self._failed: dict[str, str] = {}
    self._elsewhere: list[str] = []
    self._pace = Pace(len(self.left))
    console.say(f"{self._all} runs, {self._begun} done, {len(self.left)} to do")

  def begin(self, run: Run) -> str:
    """Counts a run that begins -> the line that says so."""
    self._begun += 1
    ended = ""
    if seconds := self._pace.seconds_left():
      ended = f", {duration(seconds)} left"
    bad = f", {len(self._failed)} failed" if self._failed else ""
    return f"[{self._begun}/{self._all}{bad}{ended}] {run.name}"

  def end(self, run: Run, outcome: Outcome, prefix: str = "") -> None:
    """Counts a run that ended; `prefix` names it if several are trained."""
    if outcome.kind == "done":
      read = lambda: read_result(place(self.folder, run))
      result = agreement.from_first(read)
      self._ledger.add(run.name, run.row, result)
      if prefix:  # The run's own table went to its log.
        accuracy = 100 * result["measured"]["target_accuracy"]
        console.say(f"{prefix}done, target {accuracy:.2f} %")
    elif outcome.kind == "busy":
      console.say(f"{prefix}another job trains this run: skipped")
      self._elsewhere.append(run.name)
    else:
      console.warn(f"{prefix}this run failed: {outcome.reason}")
      self._failed[run.name] = outcome.reason
    self._pace.advance()

  def summary(self) -> dict[str, str]:
    """Lists what is not done -> names and reasons of the runs that failed."""
    if self._elsewhere:
      names = ", ".join(self._elsewhere)
      console.say(f"skipped, other jobs train them: {names}")
    if self._failed:
      lines = [f"  {name}: {reason}" for name, reason in self._failed.items()]
      console.say("\n".join([
        f"\n{len(self._failed)} of {self._all} runs failed; the same command"
        " tries them again:", *lines,
      ]))  # fmt: skip
    return self._failed


def place(folder: pathlib.Path, run: Run) -> pathlib.Path:
  """Folder of a run in the folder of its sweep."""
  return folder / "runs" / run.name
