"""Where a result comes from: command, date, code, libraries and devices."""

import datetime
import importlib.metadata
import pathlib
import platform
import shlex
import subprocess
import sys
from typing import Any

import jax

_PACKAGES = (
  "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy",
  "scikit-learn", "pillow",
)  # fmt: skip


def collect() -> dict[str, Any]:
  """Collects what `result.json` says about the origin of a run."""
  devices = jax.devices()
  return {
    "command": _command(),
    "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "commit": commit(),
    "python": platform.python_version(),
    "packages": {p: importlib.metadata.version(p) for p in _PACKAGES},
    "devices": len(devices),
    "device_kind": devices[0].device_kind,
    "platform": devices[0].platform,
    "processes": jax.process_count(),
  }


def _command() -> str:
  """The command as it was typed, without the path of this checkout."""
  spec = getattr(sys.modules["__main__"], "__spec__", None)
  program = sys.argv[0]
  if spec:
    # `python -m package` runs the module package.__main__, and a sweep may
    # train in processes of the module package.worker.
    name = spec.name.removesuffix(".__main__").removesuffix(".worker")
    program = f"python -m {name}"
  return f"{program} {shlex.join(sys.argv[1:])}".strip()


def commit(folder: pathlib.Path = pathlib.Path(__file__).parent) -> str:
  """Commit of a checkout; "-dirty" if its code changed; "" outside of git.

  Programs write to results/ and docs/ while they run: these are no code.

  Args:
    folder: a folder of the checkout; default: the one of this file.
  """
  name = _git(folder, "describe", "--always", "--abbrev=12")
  changed = _git(
    folder, "status", "--porcelain", "--untracked-files=no", "--",
    ":(top)", ":(top,exclude)results", ":(top,exclude)docs",
  )  # fmt: skip
  return f"{name}-dirty" if changed else name


def _git(folder: pathlib.Path, *words: str) -> str:
  """What git answers; "" if it fails."""
  try:
    found = subprocess.run(
      ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10
    )
  except (OSError, subprocess.TimeoutExpired):
    return ""
  return found.stdout.strip()
