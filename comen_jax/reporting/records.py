"""Placeholder: what a record of a run is."""

import pathlib
from typing import Any, NamedTuple


class Record(NamedTuple):
  run: str
  row: str
  measured: dict[str, Any]
  provenance: dict[str, Any]
  folder: pathlib.Path | None
