"""Which checkpoints can be trusted, and what becomes of the others.

A checkpoint gets its checksums (`manifest`) just after its commit. So there
are four kinds:

- good: all files are as they were written;
- damaged: a file was changed, cut, removed or added. It is moved aside;
- cut off: it has no checksums, but others have. The run was killed while this
  one was saved or deleted. It is removed;
- old: no checkpoint has checksums. An older version wrote them. They are
  trusted, and get checksums now.
"""

import pathlib
import shutil

from comen_jax.errors import UserError
from comen_jax.run import console, manifest

_ASIDE = "damaged"  # A folder among the checkpoints.


def screen(directory: pathlib.Path) -> None:
  """Leaves only checkpoints that can be trusted; says what it does.

  If there are checkpoints, but none is good, it raises UserError and changes
  nothing.
  """
  found = numbers(directory)
  damaged, unsealed = {}, []
  for number in found:
    try:
      manifest.verify(directory / str(number))
    except manifest.UnsealedError:
      unsealed.append(number)
    except manifest.DamagedError as e:
      damaged[number] = str(e)
  if found and len(unsealed) == len(found):
    _trust(directory, unsealed)
    return
  put_aside(directory, damaged, left=set(found) - set(unsealed))
  for number in unsealed:
    folder = directory / str(number)
    shutil.rmtree(folder)
    console.say(f"{folder} is incomplete, because the run was killed: removed")


def numbers(directory: pathlib.Path) -> list[int]:
  """Numbers of the committed checkpoints in a folder, in order."""
  if not directory.is_dir():
    return []
  names = (p.name for p in directory.iterdir() if p.is_dir())
  return sorted(int(name) for name in names if name.isdecimal())


def put_aside(
  directory: pathlib.Path, damaged: dict[int, str], left: set[int]
) -> None:
  """Moves damaged checkpoints out of the way of the next save.

  Args:
    directory: folder of the checkpoints.
    damaged: what is wrong, by number of the checkpoint.
    left: numbers of all checkpoints that were thought to be good. UserError if
      all of them are damaged.
  """
  good = max(left - damaged.keys(), default=0)
  if damaged and not good:
    reasons = "; ".join(f"{n}: {reason}" for n, reason in damaged.items())
    raise UserError(
      f"no checkpoint in {directory} is good ({reasons}): start in another"
      f" --workdir, or remove {directory} to train from the start"
    )
  for number, reason in damaged.items():
    folder, aside = directory / str(number), directory / _ASIDE / str(number)
    aside.parent.mkdir(exist_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    console.warn(
      f"checkpoint {folder} is damaged ({reason}): moved to {aside};"
      f" checkpoint {good} is used"
    )


def _trust(directory: pathlib.Path, numbers: list[int]) -> None:
  """Gives checkpoints of an older version their checksums."""
  for number in numbers:
    manifest.write(directory / str(number))
  console.warn(
    f"the checkpoints in {directory} had no checksums, as those of older"
    " versions: they are used as they are"
  )
