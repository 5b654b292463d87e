"""Tables in plain text, and their rows in JSON."""

from collections.abc import Iterable
from typing import Any, NamedTuple

Row = dict[str, Any]


class Table(NamedTuple):
  """A titled table.

  Attributes:
    title: what the rows are about, with units.
    rows: a value per column name. A value that is a list or a dict is in the
      record, but is not printed.
  """

  title: str
  rows: list[Row]


def render(table: Table) -> str:
  """Draws a table: numbers to the right, columns in order of appearance."""
  columns = list(
    dict.fromkeys(k for r in table.rows for k, v in r.items() if _printed(v))
  )
  cells = [[_cell(row.get(c)) for c in columns] for row in table.rows]
  widths = [max(map(len, column)) for column in zip(columns, *cells)]
  left = [
    any(isinstance(row.get(c), str) for row in table.rows) for c in columns
  ]

  def line(texts: Iterable[str]) -> str:
    parts = (
      text.ljust(width) if is_left else text.rjust(width)
      for text, width, is_left in zip(texts, widths, left)
    )
    return "  ".join(parts).rstrip()

  rule = "-" * len(line("x" * w for w in widths))
  return "\n".join([table.title, line(columns), rule, *map(line, cells)])


def _printed(value: Any) -> bool:
  return not isinstance(value, list | dict)


def _cell(value: Any) -> str:
  if value is None or not _printed(value):
    return ""
  if not isinstance(value, float):
    return str(value)
  return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
