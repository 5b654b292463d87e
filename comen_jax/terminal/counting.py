"""A bar that counts images."""

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import (
  BarColumn,
  MofNCompleteColumn,
  TextColumn,
  TimeRemainingColumn,
)

from comen_jax.terminal import screen


@contextlib.contextmanager
def bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
  """Shows a bar -> function that adds to its count.

  There is none without a terminal, without a label, or below other bars.
  """
  found = screen.find() if label and not screen.has_bars() else None
  if not found:
    yield lambda count: None
    return
  columns = (
    TextColumn("{task.description}", markup=False),
    BarColumn(None),
    MofNCompleteColumn(),
    TextColumn("images"),
    TimeRemainingColumn(),
  )
  with screen.bars(found, *columns) as bars:
    task = bars.add_task(label, total=total)
    yield lambda count: bars.advance(task, count)
