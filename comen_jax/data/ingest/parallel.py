"""A function over many pictures, in threads, in order, with a progress bar."""

import concurrent.futures
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tqdm import tqdm

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_TASK = 16  # Items: handing over a small picture costs more than decoding it.
_WINDOW = 1024  # Items: bounds what waits in memory.


def in_order(
  function: Callable[[_Item], _Result], items: Sequence[_Item], label: str
) -> Iterator[_Result]:
  """`function` of each item. The first error, in order, ends it."""
  task = lambda start, end: [function(item) for item in items[start:end]]
  # No bar where there is no terminal: it would print a line per refresh.
  bar = tqdm(total=len(items), desc=label, unit="img", disable=None)
  with bar, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for window in range(0, len(items), _WINDOW):
      starts = range(window, min(window + _WINDOW, len(items)), _TASK)
      ends = (min(s + _TASK, len(items)) for s in starts)
      for results in pool.map(task, starts, ends):
        bar.update(len(results))
        yield from results
