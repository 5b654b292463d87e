"""The records of a sweep: one line per finished run, one file per shard.

A line is a copy of the run's `result.json`. Each file has one writer, so that
many jobs can share a folder.
"""

import json
import os
import pathlib
from typing import Any

import jax

from comen_jax.files import write_text


class Ledger:
  """The file `results.<i>-of-<n>.jsonl` of one shard in a sweep's folder."""

  def __init__(self, folder: pathlib.Path, shard: int, shards: int):
    self._place = folder / f"results.{shard}-of-{shards}.jsonl"
    self._primary = jax.process_index() == 0
    if self._place.exists() and self._primary:
      # A line that a kill cut off would spoil the next one.
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
    """Appends a finished run, once; it is on disk when this returns."""
    if run in self._known or not self._primary:
      return
    self._known.add(run)
    line = json.dumps({"run": run, "row": row, **result}, sort_keys=True)
    with open(self._place, "a") as f:
      f.write(line + "\n")
      f.flush()
      os.fsync(f.fileno())


def _read(place: pathlib.Path) -> list[dict[str, Any]]:
  """Reads complete lines only: another job may be writing one."""
  lines = place.read_text().splitlines(keepends=True)
  return [json.loads(line) for line in lines if line.endswith("\n")]
