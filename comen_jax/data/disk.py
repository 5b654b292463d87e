"""The cache folder, and folders that appear whole or not at all."""

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
  """Returns `$COMEN_JAX_CACHE`, or comen_jax in the user's cache folder.

  Raises:
    UserError: the user has no home, as in some containers.
  """
  if given := os.environ.get("COMEN_JAX_CACHE"):
    return pathlib.Path(given).expanduser()
  base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
  try:
    return pathlib.Path(base).expanduser() / "comen_jax"
  except RuntimeError as e:
    raise UserError(
      "this user has no home folder for prepared data: set $COMEN_JAX_CACHE to"
      " a folder that can be written"
    ) from e


@contextlib.contextmanager
def new_folder(place: pathlib.Path) -> Iterator[pathlib.Path]:
  """Gives a draft folder that becomes `place` if the block succeeds.

  The draft lies beside `place` and is renamed at the end. A process that is
  killed therefore leaves no half-written folder that a later start would use.
  If two processes write the same folder, the one that finishes first wins. If
  the block fails, the draft is deleted.
  """
  draft = None
  try:
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_old_drafts(place)
    # Not mkdtemp: its folders are private, but users may share a cache.
    draft = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
    draft.mkdir()
    yield draft
    _to_disk(draft)
    try:
      draft.rename(place)
    except OSError:
      if not place.exists():  # Otherwise another process was faster.
        raise
  except (OSError, RuntimeError) as e:
    # array_record raises RuntimeError with the system's message.
    code = getattr(e, "errno", None)
    way_out = "or set $COMEN_JAX_CACHE to another folder"
    if code in _FULL or any(os.strerror(full) in str(e) for full in _FULL):
      raise UserError(
        f"no space is left in {place.parent}: free some, {way_out}"
      ) from e
    if code in _FORBIDDEN:
      raise UserError(
        f"{place.parent} cannot be written ({e.strerror}): change its"
        f" permissions, {way_out}"
      ) from e
    raise
  finally:
    if draft:
      shutil.rmtree(draft, ignore_errors=True)


def _remove_old_drafts(place: pathlib.Path) -> None:
  """Deletes drafts of killed processes; after a day, nobody writes to them."""
  for draft in place.parent.glob(f".{glob.escape(place.name)}-*"):
    with contextlib.suppress(OSError):
      if time.time() - draft.stat().st_mtime > 24 * 3600:
        shutil.rmtree(draft, ignore_errors=True)


def _to_disk(folder: pathlib.Path) -> None:
  """Flushes all files: after a power cut, a renamed folder is then whole."""
  for file in folder.rglob("*"):
    if file.is_file():
      with open(file, "rb") as f:
        os.fsync(f.fileno())
