"""Files written by rename: a reader sees the old one or the new one, whole.

A leaf that imports next to nothing: any file may use it.
"""

import json
import os
import pathlib
from typing import Any


def write_json(place: pathlib.Path, value: Any) -> None:
  """Indented, keys sorted: equal values are equal bytes."""
  write_text(place, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_text(place: pathlib.Path, text: str) -> None:
  write_bytes(place, text.encode("utf-8"))


def write_bytes(place: pathlib.Path, data: bytes) -> None:
  """On disk when this returns; no draft is left where that failed."""
  draft = place.with_name(f".{place.name}.{os.getpid()}")
  try:
    with open(draft, "wb") as f:
      f.write(data)
      f.flush()
      os.fsync(f.fileno())
    draft.replace(place)
  finally:
    draft.unlink(missing_ok=True)
