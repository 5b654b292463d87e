"""The list of runs: where each one is, and the command that trained it."""

import os
import pathlib

from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Comparison
from comen_jax.report.records import Record


def listed(comparison: Comparison, out: pathlib.Path) -> Table:
  """Lists the runs under the commands that trained them.

  Args:
    comparison: runs to list.
    out: folder of the report; the runs' folders are shown as seen from there.
  """
  by_command: dict[str, list[tuple[str, Record]]] = {}
  for group in comparison.groups:
    for by_seed in group.runs.values():
      for record in by_seed.values():
        command = record.provenance.get("command", "")
        by_command.setdefault(command, []).append((group.title, record))
  rows = []
  for command, runs in by_command.items():
    rows.append((Cell(command or "Command unknown"),))
    rows += [_row(title, record, out) for title, record in runs]
  return Table(
    f"Runs on {comparison.title}, under the command that trained them",
    ("Row", "Target", "Seed", "Chosen epoch", "Date", "Folder"),
    tuple(rows),
    (
      "Source validation chose the epoch. Dates are in UTC, when the last start"
      " of the run began; older records have none. A folder is relative to the"
      " report; it is empty if only the record is there.",
    ),
  )


def _row(title: str, record: Record, out: pathlib.Path) -> tuple[Cell, ...]:
  measured = record.measured
  date = record.provenance.get("date") or ""
  place = ""
  if record.folder:
    path = os.path.relpath(record.folder.resolve(), out.resolve())
    place = pathlib.Path(path).as_posix()
  return (
    Cell(title, bold=True),
    Cell(measured["target"]),
    Cell(str(measured["seed"]), numeric=True),
    Cell(str(measured.get("selected_epoch", "")), numeric=True),
    Cell(str(date).replace("T", " ")[:16], numeric=True),
    Cell(place, link=place),
  )
