"""Runs a function on many images: in threads, in order, with progress."""

import concurrent.futures
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tqdm import tqdm

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_TASK = 16  # Items per task: one task costs more than decoding a small image.
_WINDOW = 1024  # Items in flight: limits the memory of waiting results.


def in_order(
  function: Callable[[_Item], _Result], items: Sequence[_Item], label: str
) -> Iterator[_Result]:
  """Yields `function(item)` in order; the first error in order is raised."""
  task = lambda start, end: [function(item) for item in items[start:end]]
  # Without a terminal, a bar would print one line per refresh.
  bar = tqdm(total=len(items), desc=label, unit="img", disable=None)
  with bar, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for window in range(0, len(items), _WINDOW):
      starts = range(window, min(window + _WINDOW, len(items)), _TASK)
      ends = (min(s + _TASK, len(items)) for s in starts)
      for results in pool.map(task, starts, ends):
        bar.update(len(results))
        yield from results
