"""Says in one line that a disk is full or that a folder cannot be written."""

import contextlib
import errno
import functools
import os
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from comen_jax.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (
  errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST,
)  # fmt: skip
# Orbax passes on the text of another library, in a ValueError.
_CODE = re.compile(r"os_error_code='(\d+)'")

Config = TypeVar("Config")
Result = TypeVar("Result")


@contextlib.contextmanager
def in_one_line(folder: str) -> Iterator[None]:
  """Turns errors of the disk under `folder` into a `UserError`."""
  try:
    yield
  except UserError:
    raise
  except Exception as e:
    code, path = _code(e), getattr(e, "filename", None) or folder
    if code in _FULL:
      raise UserError(
        f"the disk of {path} is full ({os.strerror(code)}): make room, then"
        " the same command goes on from the last good checkpoint"
      ) from e
    if code in _FORBIDDEN and _inside(path, folder):
      raise UserError(
        f"{path} cannot be written ({os.strerror(code)}): change its"
        " permissions, or give another --workdir"
      ) from e
    raise


def reported(
  train: Callable[[Config, str], Result],
) -> Callable[[Config, str], Result]:
  """Wraps a function of (config, workdir) in `in_one_line(workdir)`."""

  @functools.wraps(train)
  def wrapped(config: Config, workdir: str) -> Result:
    with in_one_line(workdir):
      return train(config, workdir)

  return wrapped


def _code(error: Exception) -> int | None:
  """The system's number of an error, also of one that a library reworded."""
  if isinstance(error, OSError):
    return error.errno
  if found := _CODE.search(str(error)):
    return int(found[1])
  return None


def _inside(path: str, folder: str) -> bool:
  """Whether `path` is in `folder`, or is a folder on the way to it."""
  both = os.path.abspath(path), os.path.abspath(folder)
  return os.path.commonpath(both) in both
