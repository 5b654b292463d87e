"""Keeps compiled code between starts, in the user's cache folder.

The second start of a command finds the compiled steps of the first one. Code
for one kind of CPU may not run on another, and several hosts may share a home:
each kind has a folder of its own. JAX_COMPILATION_CACHE_DIR, if set, is used
instead; JAX_ENABLE_COMPILATION_CACHE=false switches all of this off.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
import sys
import tempfile
import time
import zlib

import jax
import jaxlib

from comen_jax.data.disk import cache_dir
from comen_jax.errors import UserError

_MAX_BYTES = 2 * 1024**3  # A run has about ten functions of 0.2 to 5 MB.
_MIN_COMPILE_SECONDS = 0.0  # A run has a hundred small ones: seconds in all.
_BEING_WRITTEN_SECONDS = 60.0  # A younger file may not be whole yet.
_ZSTANDARD = b"\x28\xb5\x2f\xfd"  # How compressed files of this kind begin.


def keep() -> None:
  """Turns the cache on. A folder that cannot be written is only a warning."""
  given = jax.config.jax_compilation_cache_dir
  if given or not jax.config.jax_enable_compilation_cache:
    return
  try:
    root = cache_dir() / "compiled"
    folder = root / kind()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
      pass
    tidy(root, _MAX_BYTES)
  except UserError:
    _warn("this user has no home folder")
    return
  except OSError as e:
    _warn(f"{folder} cannot be written ({e.strerror})")
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  jax.config.update(
    "jax_persistent_cache_min_compile_time_secs", _MIN_COMPILE_SECONDS
  )


def _warn(reason: str) -> None:
  print(
    f"WARNING: {reason}: compiled code is not kept; set"
    " JAX_COMPILATION_CACHE_DIR to another folder",
    file=sys.stderr,
  )


def kind() -> str:
  """Names what compiled code depends on, beside what jax itself looks at.

  XLA splits loops over the cores that it may use when it compiles, and jax
  does not see their number. Without it, a process with two cores would run
  code that was made for one.
  """
  cores = (
    len(os.sched_getaffinity(0))
    if hasattr(os, "sched_getaffinity")
    else os.cpu_count()
  )
  digest = hashlib.sha256(_cpu().encode()).hexdigest()[:12]
  return f"jaxlib-{jaxlib.__version__}-{digest}-{cores}cores"


def _cpu() -> str:
  """Model and features of the CPU, in one text."""
  about = [platform.machine(), platform.processor()]
  with contextlib.suppress(OSError):
    text = pathlib.Path("/proc/cpuinfo").read_text()
    # "flags" on x86, "Features" on ARM; all cores of a host have the same.
    named = ("vendor_id", "model name", "flags", "CPU part", "Features")
    lines = [line.split(":", 1) for line in text.splitlines() if ":" in line]
    about += sorted({v.strip() for n, v in lines if n.strip() in named})
  return "\n".join(about)


def tidy(root: pathlib.Path, max_bytes: int) -> None:
  """Deletes broken files, then those not read for longest, down to a size.

  jax can bound a folder itself, but then a process that is killed at the wrong
  moment leaves a folder to which nothing can be added any more. It would not
  delete the folders of older versions either.

  Args:
    root: folder of all kinds.
    max_bytes: greatest size of all files together.
  """
  found = []
  for path in root.rglob("*-cache"):
    with contextlib.suppress(OSError):  # Another process may delete it.
      if not _is_broken(path):
        about = path.stat()
        found.append((max(about.st_atime, about.st_mtime), about.st_size, path))
      else:
        path.unlink()
  size = sum(size for _, size, _ in found)
  for _, own, path in sorted(found):
    if size <= max_bytes:
      break
    with contextlib.suppress(OSError):
      path.unlink()
    size -= own


def _is_broken(path: pathlib.Path) -> bool:
  """Whether a killed process wrote only a part of the file.

  jax would warn about it at every start, and never write it anew. A file that
  was found whole is made read-only, so that it is checked once.
  """
  about = path.stat()
  young = time.time() - about.st_mtime < _BEING_WRITTEN_SECONDS
  if young or not about.st_mode & 0o200:
    return False
  data = path.read_bytes()
  try:
    if not data.startswith(_ZSTANDARD):  # Where jax finds that library.
      zlib.decompress(data)
  except zlib.error:
    return True
  path.chmod(about.st_mode & ~0o222)
  return False
