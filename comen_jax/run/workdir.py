"""The files of a run: config.json, metrics.jsonl, result.json, TensorBoard.

Everything that a later start reads is written by rename or flushed to disk
before the checkpoint that vouches for it, so SIGKILL at any moment is safe.
"""

import errno
import fcntl
import json
import os
import pathlib
import weakref
from typing import Any

import jax
import numpy as np
import tensorboardX

from comen_jax.errors import BusyError, UserError
from comen_jax.files import write_json, write_text
from comen_jax.run import analysis, figures

# A run may move its data and change how it logs; nothing else.
_FREE_KEYS = ("data_dir", "logging")


class Workdir:
  """A run's folder. Only process 0 writes.

  Attributes:
    path: the folder.
    records: what metrics.jsonl holds, one dict per unit of work.
  """

  def __init__(self, path: str, config: dict[str, Any], data: dict[str, Any]):
    """Opens or makes the folder.

    Args:
      path: the folder.
      config: the run's config; must be the folder's own but for free keys.
      data: data set, target and manifest hash; likewise.
    """
    self.path = pathlib.Path(path).absolute()
    self.records: list[dict[str, Any]] = []
    self._writer = None
    self._unlock = lambda: None
    self._primary = jax.process_index() == 0
    given = {**config, "resolved": data}
    place = self.path / "config.json"
    if place.exists():
      _check_same(self.path, json.loads(place.read_text()), given)
    elif self._primary:
      self.path.mkdir(parents=True, exist_ok=True)
      write_json(place, given)

  @property
  def checkpoints(self) -> pathlib.Path:
    return self.path / "checkpoints"

  def result(self) -> dict[str, Any] | None:
    """result.json of a finished run, else None."""
    return read_result(self.path)

  def lock(self) -> None:
    """Keeps other processes from training here; BusyError if one does."""
    if self._primary:
      # At the latest when a run that failed is forgotten.
      self._unlock = weakref.finalize(self, os.close, _lock(self.path))

  def resume(self, units: int, step: int, tensorboard: bool) -> None:
    """Cuts the log back to the first `units` units of work and opens it."""
    place = self.path / "metrics.jsonl"
    if place.exists():
      lines = place.read_text().splitlines()
      # A line cut off by a kill can only be beyond the restored unit.
      self.records = [json.loads(line) for line in lines[:units]]
    if len(self.records) < units:
      raise UserError(
        f"{place} has {len(self.records)} records, its checkpoint {units}: the"
        " log was cut from outside; put it back or start in another --workdir"
      )
    if self._primary:
      text = "".join(json.dumps(r) + "\n" for r in self.records)
      write_text(place, text)
      if tensorboard:
        self._writer = tensorboardX.SummaryWriter(
          str(self.path), purge_step=step + 1, flush_secs=30
        )

  def log(self, record: dict[str, Any]) -> None:
    """Appends a unit's record; on disk when this returns."""
    self.records.append(record)
    if not self._primary:
      return
    with open(self.path / "metrics.jsonl", "a") as f:
      f.write(json.dumps(record) + "\n")
      f.flush()
      os.fsync(f.fileno())
    if self._writer:
      for name, value in record.items():
        if isinstance(value, float):
          tag = f"{record['stage']}/{name}"
          self._writer.add_scalar(tag, value, record["step"])
      self._writer.flush()

  def picture(self, arrays: dict[str, np.ndarray], title: str) -> None:
    """Writes what a report needs, and what people would rather look at."""
    if self._primary:
      analysis.save(self.path / "analysis.npz", arrays)
      figures.confusion(self.path / "confusion.png", arrays, title)
      if "thumbnails" in arrays:
        figures.latent_domains(self.path / "latent_domains.png", arrays)

  def finish(self, result: dict[str, Any]) -> None:
    """Writes result.json, which says that the run is done."""
    if self._primary:
      write_json(self.path / "result.json", result)

  def close(self) -> None:
    if self._writer:
      self._writer.close()
    self._unlock()


def read_result(path: pathlib.Path) -> dict[str, Any] | None:
  """result.json of a finished run in `path`, else None."""
  place = path / "result.json"
  return json.loads(place.read_text()) if place.exists() else None


def check_config(path: pathlib.Path, config: dict[str, Any]) -> None:
  """Raises UserError if `path` is a run of another config."""
  place = path / "config.json"
  if place.exists():
    old = json.loads(place.read_text())
    del old["resolved"]
    _check_same(path, old, config)


def _lock(path: pathlib.Path) -> int:
  """An open file's number; no other process can lock it until it is closed.

  The system frees it with the process, however that ends, and on most shared
  file systems it holds between hosts; where there are no locks, none is held.
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
