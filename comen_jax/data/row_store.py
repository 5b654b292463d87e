"""Pictures decoded once into a memory-mapped array, found again by their key.

A store is a folder that appears whole or not at all (`disk.new_folder`).
"""

import hashlib
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from comen_jax.data import disk


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
  folder = place(key)
  if not folder.exists():
    _write(folder, size, *build())
  with np.load(folder / "table.npz") as arrays:
    arrays = dict(arrays)
  names = (folder / "names.txt").read_text("utf-8").split("\n")[:-1]
  meta = json.loads((folder / "meta.json").read_text("utf-8"))
  return Store(
    images=np.load(folder / "images.npy", mmap_mode="r"),
    table=Table(names, arrays["labels"], arrays["domains"], arrays["splits"]),
    manifest=meta["manifest"],
  )


def place(key: str) -> pathlib.Path:
  """The folder of the store of that key."""
  return disk.cache_dir() / "rows" / key


def table(names, labels, domains, splits) -> Table:
  """From sequences of numbers, or of their digits."""
  return Table(
    list(names),
    np.array(labels, np.int32),
    np.array(domains, np.int32),
    np.array(splits, np.uint8),
  )


def manifest(table: Table, checksums: Sequence[str]) -> str:
  """One line per row: name, label, domain, split (0 is train), checksum."""
  rows = zip(*table, checksums, strict=True)
  return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def manifest_hash(table: Table, checksums: Sequence[str]) -> str:
  """What `sha256sum` says of the manifest."""
  return hashlib.sha256(manifest(table, checksums).encode()).hexdigest()


def _write(
  folder: pathlib.Path,
  size: int,
  table: Table,
  pictures: Iterable[np.ndarray],
  checksums: Sequence[str],
) -> None:
  shape = (len(table.names), size, size, 3)
  with disk.new_folder(folder) as draft:
    # Written, not mapped: a full disk is then an error, not a SIGBUS.
    with open(draft / "images.npy", "wb") as f:
      header = {"descr": "|u1", "fortran_order": False, "shape": shape}
      np.lib.format.write_array_header_1_0(f, header)
      rows = 0
      for picture in pictures:
        if picture.shape != shape[1:] or picture.dtype != np.uint8:
          raise ValueError(f"row {rows} is {picture.dtype} {picture.shape}")
        f.write(picture.tobytes())
        rows += 1
    if rows != shape[0]:
      raise ValueError(f"{rows} pictures for a table of {shape[0]}")
    np.savez(
      draft / "table.npz",
      labels=table.labels,
      domains=table.domains,
      splits=table.splits,
    )
    (draft / "names.txt").write_text("\n".join(table.names) + "\n", "utf-8")
    meta = {"manifest": manifest_hash(table, checksums), "size": size}
    (draft / "meta.json").write_text(json.dumps(meta), "utf-8")
