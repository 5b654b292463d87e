"""Finds the finished runs in a folder, wherever they were trained.

The folder may belong to a sweep (results*.jsonl and runs/<run>/), hold runs of
`comen_jax.main` in sub-folders, be the folder of one run, or hold published
records: results*.jsonl alone, or with a metrics.jsonl in each runs/<run>/.
"""

import fnmatch
import os
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from comen_jax.errors import UserError
from comen_jax.files import numbered_jsonl, read_json
from comen_jax.report.damage import Tell
from comen_jax.variants import name_of

_DEPTH = 3  # Levels of sub-folders that are searched.


class Found(NamedTuple):
  """A finished run as a file describes it, not yet checked.

  Attributes:
    where: file, and line if it has several, for messages.
    value: dict with `run`, `row`, `measured` and `provenance`.
    folder: folder of the run, None if only its record is there.
    problem: why its result.json cannot be read; "" for a file that can, and for
      lines of results*.jsonl.
  """

  where: str
  value: dict[str, Any]
  folder: pathlib.Path | None
  problem: str = ""

  @property
  def is_line(self) -> bool:
    """Whether it comes from results*.jsonl, not from a run's result.json."""
    return self.folder is None or self.where != str(self.folder / "result.json")


def find(top: pathlib.Path, tell: Tell) -> list[Found]:
  """Finds the finished runs in `top` and up to three levels below.

  A run that has a line in results*.jsonl and a result.json is found once.

  Args:
    top: the folder.
    tell: is told of a result.json that cannot be read, if the run has a line.
  """
  if not top.is_dir():
    raise UserError(
      f"{top} is not a folder: give the --workdir of a run or of a sweep"
    )
  found = []
  for folder, names in _walk(top):
    found += _lines(folder, fnmatch.filter(names, "results*.jsonl"), tell)
    known = {one.folder for one in found}
    if "result.json" in names and folder not in known:
      found.append(_result(folder, top))
  if not found:
    raise UserError(
      f"{top} has no finished run: neither a line in results*.jsonl nor a"
      f" result.json up to {_DEPTH} folders down; train one with python -m"
      f" comen_jax.main or python -m comen_jax.sweep --workdir {top}"
    )
  return found


def _walk(top: pathlib.Path) -> Iterator[tuple[pathlib.Path, list[str]]]:
  """Yields folders from the top down, each with its files, in sorted order."""
  for place, folders, files in os.walk(top, followlinks=True):
    folder = pathlib.Path(place)
    yield folder, sorted(files)
    depth = len(folder.relative_to(top).parts)
    # Checkpoints hold many files and no runs.
    folders[:] = sorted(
      name
      for name in folders
      if depth < _DEPTH and name != "checkpoints" and not name.startswith(".")
    )


def _lines(folder: pathlib.Path, names: list[str], tell: Tell) -> list[Found]:
  """Reads the results*.jsonl of a folder."""
  found = [
    Found(f"{folder / name}:{number}", value, None)
    for name in names
    for number, value in numbered_jsonl(folder / name)
  ]
  by_run: dict[str, list[Found]] = {}
  for one in found:
    by_run.setdefault(str(one.value.get("run")), []).append(one)
  with_folders = []
  for run, same in by_run.items():
    own = folder / "runs" / run
    result = _result_beside(own, tell)
    with_folders += [
      one._replace(folder=_folder_of(one, own, result, same)) for one in same
    ]
  return with_folders


def _result_beside(folder: pathlib.Path, tell: Tell) -> dict[str, Any] | None:
  """Reads the result.json of a run that has a line; None if it cannot."""
  place = folder / "result.json"
  try:
    return read_json(place) if place.exists() else None
  except (UserError, OSError) as e:
    tell(f"{_reason(place, e)}; the report has the run's line of results.jsonl")
    return None


def _folder_of(
  one: Found,
  folder: pathlib.Path,
  result: dict[str, Any] | None,
  same: list[Found],
) -> pathlib.Path | None:
  """Returns `folder` if it is the run's own.

  Runs of two sweeps may have the same name. `same` are all lines of that name,
  `result` is what the folder itself says.
  """
  if not folder.is_dir():
    return None
  measured = one.value.get("measured")
  if result is not None:
    own = result.get("measured") == measured
  else:
    own = all(other.value.get("measured") == measured for other in same)
  return folder if own else None


def _result(folder: pathlib.Path, top: pathlib.Path) -> Found:
  """Reads the result.json of a run; an old one does not name its row."""
  place = folder / "result.json"
  path = folder.relative_to(top).as_posix()
  run = folder.absolute().name if path == "." else path
  try:
    value = _with_row(place)
  except (UserError, OSError) as e:
    return Found(str(place), {}, folder, _reason(place, e))
  return Found(str(place), {"run": run, **value}, folder)


def _reason(place: pathlib.Path, error: UserError | OSError) -> str:
  if isinstance(error, OSError):
    return f"{place} cannot be read ({error.strerror})"
  return str(error)


def _with_row(place: pathlib.Path) -> dict[str, Any]:
  """Reads a result.json and adds the row that an old one does not name."""
  value = read_json(place)
  if "row" not in value:
    config = place.with_name("config.json")
    if not config.exists():
      raise UserError(
        f"{place} does not name its row, and there is no config.json beside it:"
        " put back the config.json of the run, or remove the folder"
      )
    try:
      value["row"] = name_of(read_json(config))
    except KeyError as e:
      raise UserError(
        f"{config} has no {e.args[0]}, so it is not the config of a run: put"
        " back the right one, or remove the folder"
      ) from e
  return value
