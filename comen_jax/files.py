"""Writes files by rename; reads JSON and JSON lines.

A reader sees the old file or the new one, never half of one. Any module may
import this one: it imports only `errors`.
"""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from comen_jax.errors import UserError


def write_json(place: pathlib.Path, value: Any) -> None:
  """Writes indented JSON with sorted keys: equal values give equal bytes."""
  write_text(place, json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_text(place: pathlib.Path, text: str) -> None:
  """Writes UTF-8 text."""
  write_bytes(place, text.encode("utf-8"))


def write_bytes(place: pathlib.Path, data: bytes) -> None:
  """Writes a file; it is on disk when this returns."""
  with draft(place) as path:
    path.write_bytes(data)


@contextlib.contextmanager
def draft(place: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a temporary path beside `place`, which the body writes.

  If the body succeeds, the draft is flushed to disk and renamed to `place`. If
  it fails, the draft is deleted and `place` stays as it was.
  """
  # The suffix stays last: some writers take the format from it.
  path = place.with_name(f".{os.getpid()}.{place.name}")
  try:
    yield path
    with open(path, "rb") as f:
      os.fsync(f.fileno())
    path.replace(place)
  finally:
    path.unlink(missing_ok=True)


def read_json(place: pathlib.Path) -> dict[str, Any]:
  """Reads a file that holds one JSON object; UserError if it does not."""
  try:
    value = json.loads(place.read_bytes())
  except ValueError as e:
    raise UserError(f"{place} is not valid JSON: remove the file") from e
  if not isinstance(value, dict):
    raise UserError(f"{place} is not a JSON object: remove the file")
  return value


def read_jsonl(place: pathlib.Path) -> list[dict[str, Any]]:
  """Reads a file with one JSON object per line.

  A last line that is not valid JSON is skipped: the process that wrote it was
  stopped, or is still writing. A bad line elsewhere raises UserError.
  """
  return [value for _, value in numbered_jsonl(place)]


def numbered_jsonl(place: pathlib.Path) -> list[tuple[int, dict[str, Any]]]:
  """Like `read_jsonl`, with the number of each line (from 1) for messages."""
  # Only "\n" ends a line; str.splitlines would also split inside strings.
  lines = [
    (number, line)
    for number, line in enumerate(place.read_bytes().split(b"\n"), 1)
    if line.strip()
  ]
  found = []
  for number, line in lines:
    try:
      value = json.loads(line)
    except ValueError as e:
      if number == lines[-1][0]:
        continue
      raise UserError(
        f"{place}:{number} is not valid JSON: remove the line"
      ) from e
    if not isinstance(value, dict):
      raise UserError(f"{place}:{number} is not a JSON object: remove the line")
    found.append((number, value))
  return found


def append_jsonl(place: pathlib.Path, record: dict[str, Any]) -> None:
  """Appends a record as one line; it is on disk when this returns.

  A file has one writer. A last line that a kill cut off is removed first.
  """
  with open(place, "ab+") as f:
    f.seek(0)
    complete, newline, tail = f.read().rpartition(b"\n")
    if tail:
      try:
        json.loads(tail)
        f.write(b"\n")  # Only the end of the line is missing.
      except ValueError:
        f.truncate(len(complete) + len(newline))
    f.write(json.dumps(record).encode("utf-8") + b"\n")
    f.flush()
    os.fsync(f.fileno())
