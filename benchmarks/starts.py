"""Starts: time to the first training step, and CPU time of short commands."""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.alternate import How, say
from benchmarks.made import ROOT
from benchmarks.tables import Table
from comen_jax.errors import UserError

_DIGITS = ("--config", "configs/digits.py")
_COMMANDS = {
  "main --help": ("comen_jax.main", "--help"),
  "sweep --help": ("comen_jax.sweep", "--help"),
  "predict --help": ("comen_jax.predict", "--help"),
  "report --help": ("comen_jax.report", "--help"),
  "main, wrong flag": ("comen_jax.main", *_DIGITS, "--config.targt=x"),
}
_MOST_ROUNDS = 3  # A start takes long, and its noise is small beside that.
_LOAD = (
  "from comen_jax.data import registry; registry.load('digits_dg', '', 32)"
)


def measure(how: How) -> list[Table]:
  """Measures starts of `configs/digits.py` on mini digits, and commands."""
  rounds = min(how.rounds, _MOST_ROUNDS)
  return [_first_steps(rounds), _commands(rounds)]


def _first_steps(rounds: int) -> Table:
  """Times a start with empty caches and the next one, `rounds` times."""
  found: dict[str, list[float]] = {"cold": [], "warm": []}
  with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    ready = scratch / "ready"
    # The images are drawn before; what is measured is compilation and imports.
    subprocess.run(
      [sys.executable, "-c", _LOAD], cwd=ROOT, env=own_caches(ready), check=True
    )
    for number in range(rounds):
      caches = scratch / str(number)
      shutil.copytree(ready, caches)
      for kind, seconds in found.items():
        workdir = scratch / f"run-{number}-{kind}"
        seconds.append(_seconds_to_first_step(workdir, own_caches(caches)))
        say(f"start {number + 1} of {rounds}, {kind}: {seconds[-1]:.1f} s")
  rows = [
    {
      "start": kind,
      "seconds": statistics.median(seconds),
      "seconds of rounds": seconds,
    }
    for kind, seconds in found.items()
  ]
  return Table("configs/digits.py: process start to end of first step", rows)


def own_caches(folder: pathlib.Path) -> dict[str, str]:
  """Environment in which data and compiled code are cached in `folder`."""
  environment = dict(os.environ)
  environment.pop("JAX_COMPILATION_CACHE_DIR", None)  # As most users have it.
  folders = {"COMEN_JAX_CACHE": "comen_jax", "XDG_CACHE_HOME": "user"}
  for variable, inner in folders.items():
    (folder / inner).mkdir(parents=True, exist_ok=True)
    environment[variable] = str(folder / inner)
  return environment


def _seconds_to_first_step(
  workdir: pathlib.Path, environment: dict[str, str]
) -> float:
  command = ["-m", "benchmarks.first_step", *_DIGITS, "--workdir", str(workdir)]
  start = time.monotonic()
  done = subprocess.run(
    [sys.executable, *command],
    cwd=ROOT,
    env=environment,
    capture_output=True,
    text=True,
  )
  last = done.stdout.splitlines()[-1:]
  if done.returncode or not last or not last[0].startswith("first step at "):
    raise UserError(f"the first step was not reached: {done.stderr[-500:]}")
  # The clock is the same for all processes of the machine.
  return float(last[0].removeprefix("first step at ")) - start


def _commands(rounds: int) -> Table:
  found: dict[str, list[tuple[float, float]]] = {n: [] for n in _COMMANDS}
  for _ in range(rounds):
    for name, command in _COMMANDS.items():
      found[name].append(_cost(command))
      say(f"{name}: {found[name][-1][0]:.2f} s of CPU time")
  rows = [
    {
      "command": name,
      "CPU seconds": statistics.median(cpu for cpu, _ in costs),
      "seconds": statistics.median(wall for _, wall in costs),
      "CPU seconds of rounds": [cpu for cpu, _ in costs],
    }
    for name, costs in found.items()
  ]
  return Table("commands that train nothing", rows)


def _cost(command: tuple[str, ...]) -> tuple[float, float]:
  """CPU seconds (user and system) and seconds of a command."""
  before = resource.getrusage(resource.RUSAGE_CHILDREN)
  start = time.monotonic()
  subprocess.run(
    [sys.executable, "-m", *command], cwd=ROOT, capture_output=True
  )
  seconds = time.monotonic() - start
  after = resource.getrusage(resource.RUSAGE_CHILDREN)
  cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
  return cpu, seconds
