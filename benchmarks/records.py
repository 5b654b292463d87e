"""The records of a sweep, kept apart from its folder of runs.

A sweep's folder holds checkpoints and is not published. `keep` adds its
records to a folder that is; `bring_back` does the reverse, so that a sweep goes
on where its folder is gone, as on another machine. `sweep` does both. A record
that was published is never replaced, so that several sweeps, one after the
other, may share the folder.
"""

import pathlib
import shutil
import subprocess
import sys

from comen_jax.files import append_jsonl, read_jsonl, write_json

_OF_A_RUN = ("config.json", "metrics.jsonl")
_SECONDS = 60  # Between two copies: what is lost when all is killed.


def sweep(flags: list[str], work: pathlib.Path, out: pathlib.Path) -> None:
  """Trains the runs whose records are neither in `work` nor in `out`.

  Args:
    flags: flags of `comen_jax.sweep`, without --workdir.
    work: folder of the sweep.
    out: folder of the records, which are copied as runs end.
  """
  bring_back(out, work)
  words = [sys.executable, "-m", "comen_jax.sweep", "--workdir", str(work)]
  with subprocess.Popen([*words, *flags]) as process:
    while process.poll() is None:
      try:
        process.wait(_SECONDS)
      except subprocess.TimeoutExpired:
        keep(work, out)
  keep(work, out)
  if process.returncode:
    raise SystemExit(process.returncode)


def keep(sweep: pathlib.Path, out: pathlib.Path) -> None:
  """Adds the records of finished runs, with their configs and logs."""
  for place in sweep.glob("results.*.jsonl"):
    there = out / place.name
    known = {r["run"] for r in read_jsonl(there)} if there.exists() else set()
    for record in read_jsonl(place):
      if record["run"] not in known:
        for name in _OF_A_RUN:
          _copy(*(f / "runs" / record["run"] / name for f in (sweep, out)))
        append_jsonl(there, record)


def bring_back(out: pathlib.Path, sweep: pathlib.Path) -> None:
  """Makes the folder of a sweep, as far as its records tell.

  The runs that were kept are finished there, so that the sweep trains the
  others. A run that is in the folder stays as it is.
  """
  for place in out.glob("results.*.jsonl"):
    for record in read_jsonl(place):
      run = pathlib.Path("runs") / record.pop("run")
      if (sweep / run).exists():
        continue
      for name in _OF_A_RUN:
        _copy(out / run / name, sweep / run / name)
      write_json(sweep / run / "result.json", record)
    if not (sweep / place.name).exists():
      _copy(place, sweep / place.name)


def _copy(found: pathlib.Path, place: pathlib.Path) -> None:
  place.parent.mkdir(parents=True, exist_ok=True)
  shutil.copyfile(found, place)
