"""The records of a sweep: one line per finished run, one file per shard.

A line is a copy of the run's `result.json`. Each file has one writer, so that
many jobs can share a folder.
"""

import pathlib
from typing import Any

import jax

from comen_jax.files import append_jsonl, read_jsonl


class Ledger:
  """The file `results.<i>-of-<n>.jsonl` of one shard in a sweep's folder."""

  def __init__(self, folder: pathlib.Path, shard: int, shards: int):
    self._place = folder / f"results.{shard}-of-{shards}.jsonl"
    self._primary = jax.process_index() == 0
    self._known = {
      record["run"]
      for place in folder.glob("results.*-of-*.jsonl")
      for record in read_jsonl(place)
    }

  def add(self, run: str, row: str, result: dict[str, Any]) -> None:
    """Appends a finished run, once; it is on disk when this returns."""
    if run in self._known or not self._primary:
      return
    self._known.add(run)
    line = {"run": run, **result, "row": row}
    append_jsonl(self._place, dict(sorted(line.items())))
