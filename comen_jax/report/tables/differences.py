"""Paired differences: of COMEN to each row, and of each method to a baseline.

`report/pairs.py` says which method is compared with which baseline.
"""

from comen_jax.report import pairs
from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Comparison, Group
from comen_jax.report.statistics import Summary, average, bounds, summarise

_NOTE = (
  "Runs of the same seed and target are subtracted, then averaged over seeds."
  " The average and its interval (Student's t) use the seeds that have every"
  " target in both rows; one seed has no interval."
)


def of_comen(comparison: Comparison) -> Table | None:
  """Shows COMEN minus each other row; None if there is nothing to compare."""
  _, title, targets, groups = comparison
  ours = comparison.ours
  if not ours:
    return None
  return _table(
    f"Paired differences on {title}: target accuracy of {ours.title} minus that"
    " of each row, in points",
    ("Minus",),
    targets,
    [((g.title,), _cells(ours, g, targets)) for g in groups if g is not ours],
  )


def of_methods(comparison: Comparison) -> Table | None:
  """Shows each method minus a baseline; None if COMEN is the only method."""
  if pairs.methods(comparison) in ([], [comparison.ours]):
    return None
  targets = comparison.targets
  return _table(
    f"Methods against their baselines on {comparison.title}: paired differences"
    " in target accuracy, in points",
    ("Method", "Minus"),
    targets,
    [
      ((ours.title, other.title), _cells(ours, other, targets))
      for ours, other in pairs.of_methods(comparison)
    ],
  )


def show_interval(ends: tuple[float, float]) -> str:
  """Prints "+0.4 to +2.1", in points of accuracy."""
  low, high = ends
  return f"{100 * low:+z.1f} to {100 * high:+z.1f}"


def _table(
  caption: str,
  names: tuple[str, ...],
  targets: tuple[str, ...],
  rows: list[tuple[tuple[str, ...], list[str]]],
) -> Table | None:
  """A table of rows of names and numbers; None if no row has a number."""
  made = tuple(
    (
      Cell(first, bold=True),
      *map(Cell, others),
      *(Cell(text, numeric=True) for text in numbers),
    )
    for (first, *others), numbers in rows
    if any(numbers)
  )
  header = (*names, *targets, "Average", "95 % interval", "Seeds")
  return Table(caption, header, made, (_NOTE,)) if made else None


def _cells(ours: Group, other: Group, targets: tuple[str, ...]) -> list[str]:
  """The differences per target, their average, its interval, its seeds."""
  found = pairs.differences(ours, other, targets)
  whole = average(found, targets)
  ends = bounds(whole)
  return [
    *(_points(summarise(found[t].values())) for t in targets),
    _points(whole),
    show_interval(ends) if ends else "",
    str(whole.runs) if whole else "",
  ]


def _points(summary: Summary | None) -> str:
  """Prints "+2.1 ± 0.4", in points of accuracy."""
  if summary is None:
    return ""
  text = f"{100 * summary.mean:+z.1f}"  # z: no "-0.0".
  if summary.std is None:
    return text
  return f"{text} ± {100 * summary.std:.1f}"
