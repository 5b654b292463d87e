"""Paired differences: COMEN minus each other row, seed by seed.

Runs of one seed have the same initialisation and order of batches, whatever
their method. So the difference of two of them varies less than each one does.
"""

from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Comparison, Group
from comen_jax.report.statistics import (
  Summary,
  Values,
  average,
  bounds,
  paired,
  summarise,
)
from comen_jax.report.tables.accuracy import BEST_VALIDATION


def of_comen(comparison: Comparison) -> Table | None:
  """Shows COMEN minus each other row; None if there is nothing to compare."""
  _, title, targets, groups = comparison
  ours = comparison.ours
  rows = [_row(ours, g, targets) for g in groups if ours and g is not ours]
  rows = [row for row in rows if any(cell.text for cell in row[1:])]
  if not rows:
    return None
  return Table(
    f"Paired differences on {title}: target accuracy of {ours.title} minus that"
    " of each row, in points",
    ("Minus", *targets, "Average", "95 % interval", "Seeds"),
    tuple(rows),
    (
      "Runs of the same seed and target are subtracted, then averaged over"
      " seeds. The average and its interval (Student's t) use the seeds that"
      " have every target in both rows; one seed has no interval.",
    ),
  )


def of_rows(ours: Group, other: Group, targets: tuple[str, ...]) -> Values:
  """Returns the differences of two rows' accuracy, by target and seed."""
  return paired(
    ours.values(BEST_VALIDATION), other.values(BEST_VALIDATION), targets
  )


def show_interval(ends: tuple[float, float]) -> str:
  """Prints "+0.4 to +2.1", in points of accuracy."""
  low, high = ends
  return f"{100 * low:+.1f} to {100 * high:+.1f}"


def _row(
  ours: Group, other: Group, targets: tuple[str, ...]
) -> tuple[Cell, ...]:
  found = of_rows(ours, other, targets)
  whole = average(found, targets)
  cells = [_points(summarise(found[t].values())) for t in targets]
  ends = bounds(whole)
  between = show_interval(ends) if ends else ""
  texts = [*cells, _points(whole), between, str(whole.runs) if whole else ""]
  return (
    Cell(other.title, bold=True),
    *(Cell(text, numeric=True) for text in texts),
  )


def _points(summary: Summary | None) -> str:
  """Prints "+2.1 ± 0.4", in points of accuracy."""
  if summary is None:
    return ""
  text = f"{100 * summary.mean:+.1f}"
  if summary.std is None:
    return text
  return f"{text} ± {100 * summary.std:.1f}"
