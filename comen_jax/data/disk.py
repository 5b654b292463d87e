"""Folders that appear whole or not at all."""

import contextlib
import errno
import glob
import os
import pathlib
import shutil
import time
import uuid
from collections.abc import Iterator

from comen_jax.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


def cache_dir() -> pathlib.Path:
  """`$COMEN_JAX_CACHE`, or comen_jax in the user's cache folder."""
  if given := os.environ.get("COMEN_JAX_CACHE"):
    return pathlib.Path(given).expanduser()
  base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
  return pathlib.Path(base).expanduser() / "comen_jax"


@contextlib.contextmanager
def new_folder(place: pathlib.Path) -> Iterator[pathlib.Path]:
  """A draft that becomes `place` when the block ends well, else vanishes.

  It is written beside its final place and renamed, so a process that is
  killed, or a second one doing the same work, never leaves half a folder that
  a later start takes for whole. Of two that finish, the first one's stays.
  """
  draft = None
  try:
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_old_drafts(place)
    # mkdir, not mkdtemp: a cache that users share stays readable.
    draft = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
    draft.mkdir()
    yield draft
    _to_disk(draft)
    try:
      draft.rename(place)
    except OSError:
      if not place.exists():  # Not a second process that was faster.
        raise
  except (OSError, RuntimeError) as e:
    # array_record raises RuntimeError with the system's words.
    code = getattr(e, "errno", None)
    way_out = "or name another folder in $COMEN_JAX_CACHE"
    if code in _FULL or any(os.strerror(full) in str(e) for full in _FULL):
      raise UserError(
        f"no space is left in {place.parent}: free some, {way_out}"
      ) from e
    if code in _FORBIDDEN:
      raise UserError(
        f"{place.parent} cannot be written ({e.strerror}): allow it, {way_out}"
      ) from e
    raise
  finally:
    if draft:
      shutil.rmtree(draft, ignore_errors=True)


def _remove_old_drafts(place: pathlib.Path) -> None:
  """Of processes that were killed; a day old, so that none still writes."""
  for draft in place.parent.glob(f".{glob.escape(place.name)}-*"):
    with contextlib.suppress(OSError):
      if time.time() - draft.stat().st_mtime > 24 * 3600:
        shutil.rmtree(draft, ignore_errors=True)


def _to_disk(folder: pathlib.Path) -> None:
  """A rename may outlive a power cut that the files' contents do not."""
  for file in folder.rglob("*"):
    if file.is_file():
      with open(file, "rb") as f:
        os.fsync(f.fileno())
