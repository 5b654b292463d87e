"""The records of a sweep: a line per finished run, a file per shard.

A run's `result.json` is the truth; a line here is its copy, so that a report
needs one read, and a file has one writer, so that many jobs can share a folder.
"""

import json
import os
import pathlib
from typing import Any

import jax

from comen_jax.files import write_text


class Ledger:
  """One shard's `results.<i>-of-<n>.jsonl` in a sweep's folder."""

  def __init__(self, folder: pathlib.Path, shard: int, shards: int):
    self._place = folder / f"results.{shard}-of-{shards}.jsonl"
    self._primary = jax.process_index() == 0
    if self._place.exists() and self._primary:
      # A line cut off by a kill would spoil the next one.
      lines = self._place.read_text().splitlines(keepends=True)
      whole = [line for line in lines if line.endswith("\n")]
      if whole != lines:
        write_text(self._place, "".join(whole))
    self._known = {
      record["run"]
      for place in folder.glob("results.*-of-*.jsonl")
      for record in _read(place)
    }

  def add(self, run: str, row: str, result: dict[str, Any]) -> None:
    """Appends a finished run, once; on disk when this returns."""
    if run in self._known or not self._primary:
      return
    self._known.add(run)
    line = json.dumps({"run": run, "row": row, **result}, sort_keys=True)
    with open(self._place, "a") as f:
      f.write(line + "\n")
      f.flush()
      os.fsync(f.fileno())


def _read(place: pathlib.Path) -> list[dict[str, Any]]:
  """Whole lines only: another job may be in the middle of one."""
  lines = place.read_text().splitlines(keepends=True)
  return [json.loads(line) for line in lines if line.endswith("\n")]
