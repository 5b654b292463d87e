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
  """UTF-8; on disk when this returns."""
  draft = place.with_name(f".{place.name}.{os.getpid()}")
  with open(draft, "w", encoding="utf-8") as f:
    f.write(text)
    f.flush()
    os.fsync(f.fileno())
  draft.replace(place)
