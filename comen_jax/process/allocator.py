"""Keeps freed memory in the process, so that each step finds it again.

The temporary arrays of a step are large. glibc maps each block above 32 MB
anew and gives it back when it is freed. So every step had tens of thousands of
page faults, which took a tenth to two fifths of its time on CPU
(docs/performance.md). Here the blocks come from the heap, which does not
shrink. The process then holds its peak of memory until it ends.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # From malloc.h.


def keep_memory() -> bool:
  """Call it before jax starts; returns whether the C library is glibc.

  Call it before the process starts threads, too. A thread that starts earlier
  has an arena of its own, and glibc gives this arena to later threads as well.
  """
  if not sys.platform.startswith("linux"):
    return False
  library = ctypes.CDLL(None)
  if not hasattr(library, "gnu_get_libc_version"):
    return False
  # Other arenas than the first have no heap: they would map all large blocks.
  settings = {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: -1}
  return all(library.mallopt(*setting) == 1 for setting in settings.items())
