"""Pictures decoded once into a memory-mapped array, found again by their hash.

A store is a folder that appears whole or not at all: it is written beside its
final place and renamed, so a process that is killed, or a second one doing the
same work, never leaves half a store that a later start takes for whole.
"""

import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Table(NamedTuple):
  """What is known of each row: the manifest without its pictures."""

  names: Sequence[str]
  labels: np.ndarray  # int32 [N]
  domains: np.ndarray  # int32 [N]
  splits: np.ndarray  # uint8 [N]


class Store(NamedTuple):
  """An opened store. `images` is memory-mapped, read-only."""

  images: np.ndarray  # uint8 [N, S, S, 3]
  table: Table
  manifest: str


def cache_dir() -> pathlib.Path:
  """`$COMEN_JAX_CACHE`, or comen_jax in the user's cache folder."""
  if given := os.environ.get("COMEN_JAX_CACHE"):
    return pathlib.Path(given).expanduser()
  base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
  return pathlib.Path(base).expanduser() / "comen_jax"


def open_or_build(
  key: str,
  size: int,
  build: Callable[[], tuple[Table, Iterable[np.ndarray], Sequence[str]]],
) -> Store:
  """The store of that key; built first if there is none.

  Args:
    key: names the store; must change with the source files, the size and
      whatever decodes them.
    size: S, the stored square.
    build: gives the table, the pictures (uint8 [S, S, 3], in the table's
      order) and the checksum of each picture's source. `checksums` may be a
      list that fills while the pictures are read.
  """
  place = cache_dir() / "rows" / key
  if not place.exists():
    _write(place, size, *build())
  with np.load(place / "table.npz") as table:
    arrays = dict(table)
  names = (place / "names.txt").read_text("utf-8").splitlines()
  meta = json.loads((place / "meta.json").read_text("utf-8"))
  return Store(
    images=np.load(place / "images.npy", mmap_mode="r"),
    table=Table(names, arrays["labels"], arrays["domains"], arrays["splits"]),
    manifest=meta["manifest"],
  )


def manifest_hash(table: Table, checksums: Sequence[str]) -> str:
  """sha256 over one line per row: name, label, domain, split, checksum."""
  digest = hashlib.sha256()
  for row in zip(*table, checksums, strict=True):
    digest.update("\t".join(map(str, row)).encode() + b"\n")
  return digest.hexdigest()


def _write(
  place: pathlib.Path,
  size: int,
  table: Table,
  pictures: Iterable[np.ndarray],
  checksums: Sequence[str],
) -> None:
  place.parent.mkdir(parents=True, exist_ok=True)
  draft = pathlib.Path(
    tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent)
  )
  try:
    images = np.lib.format.open_memmap(
      draft / "images.npy",
      mode="w+",
      dtype=np.uint8,
      shape=(len(table.names), size, size, 3),
    )
    for row, picture in zip(range(len(images)), pictures, strict=True):
      images[row] = picture
    images.flush()
    np.savez(
      draft / "table.npz",
      labels=table.labels,
      domains=table.domains,
      splits=table.splits,
    )
    (draft / "names.txt").write_text("\n".join(table.names) + "\n", "utf-8")
    meta = {"manifest": manifest_hash(table, checksums), "size": size}
    (draft / "meta.json").write_text(json.dumps(meta), "utf-8")
    try:
      draft.rename(place)
    except OSError:
      if not place.exists():  # Not a second process that was faster.
        raise
  finally:
    shutil.rmtree(draft, ignore_errors=True)
