"""Checksums of a checkpoint: written once after its commit, verified later.

Orbax has no checksum over the values of arrays: of a checkpoint with a flipped
bit it restores wrong numbers and says nothing.
"""

import hashlib
import json
import os
import pathlib

from comen_jax.files import write_json

NAME = "sha256.json"


class DamagedError(Exception):
  """Reports that a folder is not as it was written; its text says why."""


class UnsealedError(DamagedError):
  """Reports that a folder has no manifest.

  Its writer was killed between commit and manifest, or is an older version.
  """


def write(folder: pathlib.Path) -> None:
  """Writes size and sha256 of every file; they are on disk at the return."""
  found = {
    name: {"bytes": path.stat().st_size, "sha256": _digest(path)}
    for name, path in _files(folder).items()
  }
  write_json(folder / NAME, found)
  # The rename is on disk only when the folder is.
  handle = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(handle)
  finally:
    os.close(handle)


def verify(folder: pathlib.Path) -> None:
  """Raises DamagedError if a file was changed, cut, removed or added."""
  try:
    wanted = json.loads((folder / NAME).read_bytes())
    sizes = {name: about["bytes"] for name, about in wanted.items()}
    digests = {name: about["sha256"] for name, about in wanted.items()}
  except FileNotFoundError as e:
    raise UnsealedError(f"{NAME} is missing") from e
  except (ValueError, AttributeError, KeyError, TypeError) as e:
    raise DamagedError(f"{NAME} is not a list of checksums") from e
  files = _files(folder)
  # Names and sizes first: most damages are then found without reading a file.
  for name in sorted(sizes.keys() | files.keys()):
    if name not in files:
      raise DamagedError(f"{name} is missing")
    if name not in sizes:
      raise DamagedError(f"{name} was added")
    if (size := files[name].stat().st_size) != sizes[name]:
      raise DamagedError(f"{name} has {size} bytes, not {sizes[name]}")
  for name, path in files.items():
    if _digest(path) != digests[name]:
      raise DamagedError(f"{name} has changed")


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
  """Returns all files but the manifest, by relative name."""
  return {
    path.relative_to(folder).as_posix(): path
    for path in sorted(folder.rglob("*"))
    if path.is_file() and path != folder / NAME
  }


def _digest(path: pathlib.Path) -> str:
  with open(path, "rb") as f:
    return hashlib.file_digest(f, "sha256").hexdigest()
