"""Times contestants alternately, so that a noisy machine disturbs all alike.

Medians are over rounds. A ratio is the median of the ratios of each round,
whose two times were taken within seconds of each other.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks.made import ROOT
from comen_jax.errors import UserError

Run = Callable[[int], float]  # Number of steps -> seconds per step.


class How(NamedTuple):
  """How long everything is measured.

  Attributes:
    rounds: number of rounds.
    turn: seconds that a contestant runs in a round, at least one step.
    only: measure only rows whose name contains this text.
  """

  rounds: int = 7
  turn: float = 1.0
  only: str = ""

  def wants(self, name: str) -> bool:
    """Whether the row `name` is to be measured."""
    return self.only in name


class Times:
  """Seconds per step of each contestant in each round."""

  def __init__(self, seconds: Mapping[str, list[float]]):
    self.seconds = dict(seconds)

  def median(self, name: str) -> float:
    """Median seconds per step of a contestant."""
    return statistics.median(self.seconds[name])

  def best(self, name: str) -> float:
    """Least seconds per step of a contestant."""
    return min(self.seconds[name])

  def ratio(self, a: str, b: str) -> float:
    """Median over rounds of: time of `a` divided by time of `b`."""
    pairs = zip(self.seconds[a], self.seconds[b])
    return statistics.median(x / y for x, y in pairs)


def alternate(contestants: Mapping[str, Run], how: How) -> Times:
  """Runs all contestants once per round.

  Every second round goes through them in reverse order. So a machine that
  slowly becomes faster or slower favours nobody.

  Args:
    contestants: for each name, a function that times that many steps. It has
      been warmed up.
    how: number of rounds and length of a turn.
  """
  steps = {
    name: max(1, round(how.turn / max(run(1), 1e-9)))
    for name, run in contestants.items()
  }
  seconds: dict[str, list[float]] = {name: [] for name in contestants}
  for number in range(how.rounds):
    names = list(contestants)
    for name in names[::-1] if number % 2 else names:
      seconds[name].append(contestants[name](steps[name]))
    say(f"round {number + 1} of {how.rounds}")
  return Times(seconds)


class Worker:
  """A process that holds contestants of one module; see `worker`."""

  def __init__(
    self,
    module: str,
    environment: Mapping[str, str] | None = None,
    folder: pathlib.Path = ROOT,
  ):
    """Starts the process.

    Args:
      module: name of the module whose `prepare` makes the contestants.
      environment: variables that the process gets in addition to ours.
      folder: the checkout whose code the process runs.
    """
    self._module = module
    self._process = subprocess.Popen(
      [sys.executable, "-m", "benchmarks.worker", module],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
      cwd=folder,
      env={**os.environ, **(environment or {})},
    )

  def __enter__(self) -> "Worker":
    return self

  def __exit__(self, *error: Any) -> None:
    self._process.stdin.close()
    try:
      self._process.wait(timeout=20)
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()
    self._process.stdout.close()

  def prepare(self, name: str) -> dict[str, Any]:
    """Makes a contestant and runs its first step -> facts about it."""
    start = time.monotonic()
    facts = self._ask("prepare", name)["facts"]
    seconds = time.monotonic() - start
    say(f"{self._module}: {name} prepared in {seconds:.0f} s")
    return facts

  def run(self, name: str, steps: int) -> float:
    """Runs a contestant -> seconds per step."""
    return self._ask("run", name, steps)["seconds"]

  def idle_cpu_share(self) -> float:
    """CPU seconds per second that the process used while it waited."""
    return self._ask("idle", "")["idle_cpu_share"]

  def _ask(self, what: str, name: str, steps: int = 0) -> dict[str, Any]:
    request = json.dumps({"do": what, "name": name, "steps": steps})
    line = ""
    try:
      self._process.stdin.write(request + "\n")
      self._process.stdin.flush()
      line = self._process.stdout.readline()
    except BrokenPipeError:
      pass
    answer = json.loads(line) if line else {"error": "the process ended"}
    if "error" in answer:
      raise UserError(
        f"{self._module} failed at {what} {name}: {answer['error']}"
      )
    return answer


def say(text: str) -> None:
  """Tells the progress on stderr; stdout is for the tables."""
  print(text, file=sys.stderr, flush=True)
