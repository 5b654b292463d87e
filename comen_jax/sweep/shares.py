"""Shares out the cores or GPUs of this machine among the jobs of a sweep."""

import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

from comen_jax.errors import UserError

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PROBE = "import jax; print(jax.default_backend(), jax.local_device_count())"


class Share(NamedTuple):
  """What one job may use.

  Attributes:
    cores: numbers of CPU cores; () if the job is not pinned.
    devices: names of GPUs, separated by commas; "" if there are none.
  """

  cores: tuple[int, ...] = ()
  devices: str = ""

  def environ(self) -> dict[str, str]:
    """Returns the environment of the job's process."""
    return {**os.environ, **({_VISIBLE: self.devices} if self.devices else {})}


def make(jobs: int) -> list[Share]:
  """Returns one share per job; all are equal, so that all runs are alike."""
  platform, count = _devices()
  if platform == "cpu":
    return _of_cores(jobs)
  if platform != "gpu":
    raise UserError(
      f"--jobs={jobs}: a {platform.upper()} serves one process only; give"
      " --jobs=1, or a --shard to each host"
    )
  given = [name.strip() for name in os.environ.get(_VISIBLE, "").split(",")]
  names = given[:count] if any(given) else list(map(str, range(count)))
  _check(jobs, len(names), "GPUs")
  return [Share(devices=",".join(part)) for part in _parts(names, jobs)]


def _of_cores(jobs: int) -> list[Share]:
  if not hasattr(os, "sched_getaffinity"):  # Such as macOS.
    _check(jobs, os.cpu_count() or 1, "CPU cores")
    return [Share()] * jobs
  cores = sorted(os.sched_getaffinity(0), key=_physical)
  _check(jobs, len(cores), "CPU cores")
  return [Share(cores=tuple(part)) for part in _parts(cores, jobs)]


def _check(jobs: int, count: int, things: str) -> None:
  if jobs > count:
    raise UserError(
      f"--jobs={jobs}: only {count} {things} may be used here; give"
      f" --jobs={count} or less"
    )


def _parts(things: list, jobs: int) -> list[list]:
  size = len(things) // jobs
  return [things[size * job : size * (job + 1)] for job in range(jobs)]


def _physical(core: int) -> tuple[int, ...]:
  """Sorts the two threads of a physical core together: one job gets both."""
  folder = pathlib.Path(f"/sys/devices/system/cpu/cpu{core}/topology")
  try:
    names = ("physical_package_id", "core_id")
    return (*(int((folder / name).read_text()) for name in names), core)
  except (OSError, ValueError):
    return (0, 0, core)


def _devices() -> tuple[str, int]:
  """Asks jax, in a process of its own, for the platform and its devices.

  In this process jax would take the devices, and the jobs could not.
  """
  if os.environ.get("JAX_PLATFORMS") == "cpu":
    return "cpu", 1
  found = subprocess.run(
    [sys.executable, "-c", _PROBE],
    env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    capture_output=True,
    text=True,
  )
  if found.returncode:
    reason = found.stderr.strip().splitlines()[-1:] or ["no reason given"]
    raise UserError(f"jax finds no devices: {reason[0]}")
  platform, count = found.stdout.split()[-2:]
  return platform, int(count)
