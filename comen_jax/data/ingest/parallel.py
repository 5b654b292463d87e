"""Runs a function on many images: in threads, in order, with progress.

Memory stays bounded: few results wait at a time, and a `Budget` limits what
the threads hold together.
"""

import collections
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from comen_jax.terminal import counting

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_TASK = 16  # Items per task: one task costs more than decoding a small image.
_THREADS = 32  # Each may hold one image file.


class Budget:
  """Limits an amount, such as pixels, that several threads hold together.

  A thread waits until its amount fits. One that is above the limit is held
  alone.
  """

  def __init__(self, limit: int):
    self._limit = limit
    self._held = 0
    self._changed = threading.Condition()

  @contextlib.contextmanager
  def hold(self, amount: int) -> Iterator[None]:
    """Holds `amount` while the block runs."""
    fits = lambda: not self._held or self._held + amount <= self._limit
    with self._changed:
      self._changed.wait_for(fits)
      self._held += amount
    try:
      yield
    finally:
      with self._changed:
        self._held -= amount
        self._changed.notify_all()


def in_order(
  function: Callable[[_Item], _Result],
  items: Sequence[_Item],
  label: str,
  window: int = 1024,
) -> Iterator[_Result]:
  """Yields `function(item)` in order; the first error in order is raised.

  Args:
    function: runs in a thread.
    items: its arguments.
    label: label of the progress bar; without one, there is no bar.
    window: number of items in progress or waiting to be yielded.
  """
  threads = min(os.cpu_count() or 1, _THREADS)
  step = max(1, min(_TASK, window // (2 * threads)))
  task = lambda start: [function(item) for item in items[start : start + step]]
  pool = concurrent.futures.ThreadPoolExecutor(threads)
  waiting = collections.deque()

  with counting.bar(label, len(items)) as count:

    def oldest() -> list[_Result]:
      results = waiting.popleft().result()
      count(len(results))
      return results

    try:
      for start in range(0, len(items), step):
        waiting.append(pool.submit(task, start))
        if len(waiting) * step >= window:
          yield from oldest()
      while waiting:
        yield from oldest()
    finally:
      pool.shutdown(cancel_futures=True)
