"""Finds the images that a command line names."""

import glob
import os
import stat
import sys
from collections.abc import Iterator, Sequence

from comen_jax.data.ingest.archive import SUFFIXES, is_hidden
from comen_jax.errors import UserError

_ENDINGS = f"(names that end in {' '.join(SUFFIXES)})"


def pictures(arguments: Sequence[str]) -> list[str]:
  """Returns the paths of all pictures in the order of `arguments`, each once.

  Args:
    arguments: each argument is one of
      a file with any name; if it does not exist, `read` raises an error later;
      a folder: all pictures below it, sorted;
      a pattern such as "photos/**/*.jpg": all matching pictures, sorted;
      @file: a text file with one file, folder or pattern per line; lines that
        begin with # are comments;
      -: the same lines from standard input.

  Raises:
    UserError: a folder, pattern or list gives no pictures.
  """
  found: dict[str, None] = {}
  for argument in arguments:
    found |= dict.fromkeys(_expand(argument))
  return list(found)


def read(path: str) -> bytes:
  """Returns the bytes of a regular file: others might never end."""
  return _read(path, regular=True)


def _read(path: str, regular: bool) -> bytes:
  try:
    is_regular = stat.S_ISREG(os.stat(path).st_mode)
    if is_regular or not regular:
      with open(path, "rb") as f:
        return f.read()
    reason = "it is not a regular file"
  except (OSError, ValueError) as e:  # ValueError: a zero byte in the path.
    reason = e.strerror if isinstance(e, OSError) else e
  raise UserError(f"{path} cannot be read: {reason}")


def _expand(argument: str) -> Iterator[str]:
  """Expands one argument. A file with exactly this name has priority."""
  if argument == "-":
    yield from _listed("standard input", sys.stdin.read())
  elif argument.startswith("@") and not os.path.lexists(argument):
    # Not only regular files: the shell's @<(command) is a pipe.
    text = os.fsdecode(_read(argument[1:], regular=False))
    yield from _listed(argument, text)
  else:
    yield from _named(argument)


def _listed(name: str, text: str) -> Iterator[str]:
  lines = [line.strip() for line in text.split("\n")]
  lines = [line for line in lines if line and not line.startswith("#")]
  if not lines:
    raise UserError(f"{name} names no pictures: give one path per line")
  for line in lines:
    yield from _named(line)


def _named(argument: str) -> Iterator[str]:
  path = os.path.expanduser(argument)
  if os.path.isdir(path):
    found = list(_below(path, ()))
    if not found:
      raise UserError(f"{argument} holds no pictures {_ENDINGS}")
  elif os.path.lexists(path) or not any(c in path for c in "*?["):
    found = [path]
  else:
    found = list(_matches(path))
    if not found:
      raise UserError(f"{argument} matches no pictures {_ENDINGS}")
  yield from found


def _matches(pattern: str) -> Iterator[str]:
  for path in sorted(glob.glob(pattern, recursive=True)):
    if os.path.isdir(path):
      yield from _below(path, ())
    elif path.lower().endswith(SUFFIXES):
      yield path


def _below(folder: str, above: tuple[str, ...]) -> Iterator[str]:
  """Yields the pictures below `folder`. Follows links, but not in circles."""
  real = os.path.realpath(folder)
  if real in above:
    return
  try:
    entries = sorted(os.scandir(folder), key=lambda e: e.name)
  except OSError as e:
    raise UserError(f"{folder} cannot be read: {e.strerror}") from e
  for entry in entries:
    if is_hidden(entry.name):
      continue
    if entry.is_dir():
      yield from _below(entry.path, (*above, real))
    elif entry.name.lower().endswith(SUFFIXES):
      yield entry.path
