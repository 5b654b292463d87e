"""The files of a run: config.json, metrics.jsonl, result.json, TensorBoard.

What a later start reads is renamed into place, or is on disk before the
checkpoint that relies on it. So SIGKILL at any moment is safe.
"""

import errno
import fcntl
import json
import os
import pathlib
import weakref
from functools import partial
from typing import Any

import jax
import numpy as np

from comen_jax.data.dataset import Dataset, Split
from comen_jax.errors import BusyError, UserError
from comen_jax.files import (
  append_jsonl,
  read_json,
  read_jsonl,
  write_json,
  write_text,
)
from comen_jax.methods import options
from comen_jax.process import agreement
from comen_jax.run import analysis, examples, recovery
from comen_jax.run.events import Events

# A run may move its data and change its logging, nothing else.
_FREE_KEYS = ("data_dir", "logging")


class Workdir:
  """A run's folder. Only process 0 writes. As a context, it is closed after.

  Attributes:
    path: the folder.
    records: contents of metrics.jsonl, one dict per unit of work.
  """

  def __init__(self, path: str, config: dict[str, Any], data: dict[str, Any]):
    """Opens the folder, or makes it.

    Args:
      path: the folder.
      config: the run's config; it must equal the folder's, except free keys
        and the options of methods that the run does not use.
      data: data set, target, manifest and weights; they must be equal too.
    """
    self.path = pathlib.Path(path).absolute()
    self.records: list[dict[str, Any]] = []
    self._events: Events | None = None
    self._unlock = lambda: None
    self._primary = jax.process_index() == 0
    given = {**options.recorded(config), "resolved": data}
    agreement.from_first(partial(_open, self.path, given))

  @property
  def checkpoints(self) -> pathlib.Path:
    return self.path / "checkpoints"

  def result(self) -> dict[str, Any] | None:
    """Reads result.json of a finished run; None if it is not finished."""
    return agreement.from_first(partial(read_result, self.path))

  def lock(self) -> None:
    """Locks the folder; raises BusyError if another run trains here."""
    file = agreement.from_first(partial(_lock, self.path))
    if self._primary:
      # Unlocked at the latest when the object of a failed run is freed.
      self._unlock = weakref.finalize(self, os.close, file)

  def resume(self, units: int, step: int, tensorboard: bool) -> None:
    """Cuts the log back to its first `units` records and opens it."""
    place = self.path / "metrics.jsonl"
    read = lambda: read_jsonl(place)[:units] if place.exists() else []
    self.records = agreement.from_first(read)
    if len(self.records) < units:
      raise UserError(
        f"{place} has {len(self.records)} records, but the checkpoint needs"
        f" {units}: put the log back, or start in another --workdir"
      )
    if self._primary:
      text = "".join(json.dumps(r) + "\n" for r in self.records)
      write_text(place, text)
      if tensorboard:
        self._events = Events(self.path, step + 1)

  def log(self, record: dict[str, Any]) -> None:
    """Appends the record of a unit; it is on disk when this returns."""
    self.records.append(record)
    if not self._primary:
      return
    append_jsonl(self.path / "metrics.jsonl", record)
    if self._events:
      scalars = {
        f"{record['stage']}/{name}": value
        for name, value in record.items()
        if isinstance(value, float)
      }
      self._events.add(scalars, record["step"])

  def picture(self, arrays: dict[str, np.ndarray], title: str) -> None:
    """Writes analysis.npz for reports, and the figures."""
    if self._primary:
      # Imported here: a run draws at its end, and matplotlib takes a while.
      from comen_jax.run import figures

      analysis.save(self.path / "analysis.npz", arrays)
      figures.confusion(self.path / "confusion.png", arrays, title)
      if "thumbnails" in arrays:
        figures.latent_domains(self.path / "latent_domains.png", arrays)

  def give_examples(self, dataset: Dataset, split: Split) -> None:
    """Writes a few target images as files, to try `predict` on."""
    if self._primary:
      examples.save(self.path / "examples", dataset, split)

  def finish(self, result: dict[str, Any]) -> None:
    """Writes result.json, which marks the run as finished."""
    if self._primary:
      write_json(self.path / "result.json", result)

  def __enter__(self) -> "Workdir":
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def close(self) -> None:
    """Closes the log and unlocks the folder."""
    if self._events:
      self._events.close()
    self._unlock()


def read_result(path: pathlib.Path) -> dict[str, Any] | None:
  """Reads result.json of the run in `path`; None if it is not finished."""
  place = path / "result.json"
  return read_json(place) if place.exists() else None


def check_config(path: pathlib.Path, config: dict[str, Any]) -> None:
  """Raises UserError if `path` holds a run of another config."""
  place = path / "config.json"
  if place.exists():
    old = _read_config(place)
    old.pop("resolved", None)
    _check_same(path, old, options.recorded(config))


def _open(path: pathlib.Path, given: dict[str, Any]) -> None:
  """Makes the folder, or checks that it has the same config."""
  place = path / "config.json"
  if place.exists():
    _check_same(path, _read_config(place), given)
  else:
    _check_empty(path)
    path.mkdir(parents=True, exist_ok=True)
    write_json(place, given)


def _check_empty(path: pathlib.Path) -> None:
  """Raises UserError if there is a run, but not what it is a run of."""
  left = [path / name for name in ("metrics.jsonl", "result.json")]
  checkpoints = path / "checkpoints"
  left += [checkpoints / str(n) for n in recovery.numbers(checkpoints)]
  for place in left:
    if place.exists():
      raise UserError(
        f"{place} is there, but not config.json, so nobody knows its config:"
        " put config.json back, or give another --workdir"
      )


def _read_config(place: pathlib.Path) -> dict[str, Any]:
  try:
    return read_json(place)
  except UserError as e:
    raise UserError(
      f"{place} is damaged: put back a copy, or give another --workdir"
    ) from e


def _lock(path: pathlib.Path) -> int:
  """Locks the folder's lock file -> its descriptor; closing it unlocks.

  The system unlocks it when the process ends, however it ends. On most shared
  file systems the lock also holds between hosts. A file system without locks
  gives none.
  """
  file = os.open(path / ".lock", os.O_RDWR | os.O_CREAT)
  try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError as e:
    if e.errno in (errno.EACCES, errno.EAGAIN):
      os.close(file)
      raise BusyError(
        f"{path} is being trained by another process: wait for it, or give"
        " another --workdir"
      ) from e
  return file


def _check_same(path: pathlib.Path, old: dict, new: dict) -> None:
  # Through JSON, so that tuples compare as the lists they were stored as.
  new = json.loads(json.dumps(new))
  olds, news = (dict(_flat({k: v for k, v in d.items() if k not in _FREE_KEYS}))
                for d in (old, new))  # fmt: skip
  if olds == news:
    return
  absent = "(absent)"
  changes = [
    f"{key} was {olds.get(key, absent)!r}, now {news.get(key, absent)!r}"
    for key in sorted(olds.keys() | news.keys())
    if olds.get(key, absent) != news.get(key, absent)
  ]
  raise UserError(
    f"workdir {path} belongs to another config: {'; '.join(changes)}."
    " Give another --workdir, or the old values to resume"
  )


def _flat(tree: dict, prefix: str = ""):
  for key, value in tree.items():
    if isinstance(value, dict):
      yield from _flat(value, f"{prefix}{key}.")
    else:
      yield prefix + key, value
