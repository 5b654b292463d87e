"""Reads the records of finished runs that sweeps left in their folders.

A sweep's folder holds results*.jsonl, a line per finished run, and runs/<run>/;
published records may come without the latter. A run that stands in several
files or lines counts once.
"""

import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from comen_jax.errors import UserError

# Without these a run has no place in any table.
_NEEDED = {
  "dataset": str,
  "manifest": str,
  "target": str,
  "sources": list,
  "seed": int,
  "epochs": int,
  "num_domains": int,
  "target_images": int,
  "val_accuracy": float | int,
  "target_accuracy": float | int,
  "target_accuracy_last": float | int,
  "target_accuracy_oracle": float | int,
}


class Record(NamedTuple):
  """A finished run.

  Attributes:
    run: its id.
    row: its name in the tables (`variants.VARIANTS`).
    measured: as in its result.json.
    provenance: as in its result.json.
    folder: of the run, None if only its record is there.
  """

  run: str
  row: str
  measured: dict[str, Any]
  provenance: dict[str, Any]
  folder: pathlib.Path | None


def read(folders: Sequence[pathlib.Path]) -> list[Record]:
  """All finished runs of the sweeps in `folders`, ordered by id."""
  found: dict[str, tuple[Record, str]] = {}
  for folder in folders:
    own = [r for place in _places(folder) for r in _parse(place, folder)]
    if not own:
      raise UserError(
        f"{folder} has no finished run in its results*.jsonl: let the sweep"
        " finish one"
      )
    for record, where in own:
      known = found.get(record.run)
      if known:
        _check_same(known, (record, where))
      if not known or (known[0].folder is None and record.folder):
        found[record.run] = record, where
  return [record for _, (record, _) in sorted(found.items())]


def _places(folder: pathlib.Path) -> list[pathlib.Path]:
  if not folder.is_dir():
    raise UserError(f"{folder} is no folder: give the --workdir of a sweep")
  places = sorted(folder.glob("results*.jsonl"))
  if not places:
    raise UserError(
      f"{folder} holds no results*.jsonl: run the sweep first, python -m"
      f" comen_jax.sweep --workdir {folder}"
    )
  return places


def _parse(
  place: pathlib.Path, folder: pathlib.Path
) -> list[tuple[Record, str]]:
  """Records of a file, each with its place for messages."""
  found = []
  lines = place.read_text(encoding="utf-8", errors="replace").splitlines()
  while lines and not lines[-1].strip():
    lines.pop()
  for number, line in enumerate(lines, 1):
    if not line.strip():
      continue
    where = f"{place}:{number}"
    try:
      value = json.loads(line)
    except json.JSONDecodeError as e:
      if number == len(lines):
        continue  # Cut off by a kill; that run is not finished.
      raise UserError(
        f"{where} is no record ({e.msg}): remove the line, the sweep writes"
        " it anew"
      ) from e
    _check(value, where)
    own = folder / "runs" / value["run"]
    record = Record(
      value["run"],
      value["row"],
      # Records from before the key was there are of runs without labels.
      {"domain_labels": False, **value["measured"]},
      value["provenance"],
      own if own.is_dir() else None,
    )
    found.append((record, where))
  return found


def _check(value: Any, where: str) -> None:
  kinds = {"run": str, "row": str, "measured": dict, "provenance": dict}
  _check_keys(value, kinds, where, "")
  _check_keys(value["measured"], _NEEDED, where, "measured.")


def _check_keys(value: Any, kinds: dict, where: str, prefix: str) -> None:
  for key, kind in kinds.items():
    if not isinstance(value, dict) or not isinstance(value.get(key), kind):
      raise UserError(
        f"{where} has no {prefix}{key}: it is no record of a sweep; remove the"
        " line"
      )


def _check_same(one: tuple[Record, str], other: tuple[Record, str]) -> None:
  """Twice the same run is fine, two different runs of one name are not."""
  (a, place_a), (b, place_b) = one, other
  first = {"row": a.row, **a.measured}
  second = {"row": b.row, **b.measured}
  for key in sorted(first.keys() | second.keys()):
    if first.get(key) != second.get(key):
      raise UserError(
        f"{a.run} stands in {place_a} and in {place_b} with different {key}"
        f" ({first.get(key)} and {second.get(key)}): report the folders one by"
        " one, or remove the line that is out of date"
      )
