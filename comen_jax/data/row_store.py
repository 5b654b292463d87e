"""Stores decoded images as one memory-mapped array and finds them by a key.

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
  """What is known about each row: the manifest without its checksums."""

  names: Sequence[str]
  labels: np.ndarray  # int32 [N]
  domains: np.ndarray  # int32 [N]
  splits: np.ndarray  # uint8 [N]


class Store(NamedTuple):
  """An opened store. `images` is memory-mapped and read-only."""

  images: np.ndarray  # uint8 [N, S, S, 3]
  table: Table
  manifest: str


def open_or_build(
  key: str,
  size: int,
  build: Callable[[], tuple[Table, Iterable[np.ndarray], Sequence[str]]],
) -> Store:
  """Opens the store of `key`; builds it first if it does not exist.

  Args:
    key: name of the store; it must change with the source files, with the size
      and with the version of the decoder.
    size: S, side of the stored squares in pixels.
    build: returns the table, the images (uint8 [S, S, 3], in the order of the
      table) and the checksum of each image file. The list of checksums may
      fill while the images are read.
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
  """Returns the folder of the store of `key`."""
  return disk.cache_dir() / "rows" / key


def table(
  names: Iterable[str],
  labels: Sequence[int | str],
  domains: Sequence[int | str],
  splits: Sequence[int | str],
) -> Table:
  """Makes a table from numbers, or from numbers written as text."""
  return Table(
    list(names),
    np.array(labels, np.int32),
    np.array(domains, np.int32),
    np.array(splits, np.uint8),
  )


def manifest(table: Table, checksums: Sequence[str]) -> str:
  """Writes one line per row: name, label, domain, split, checksum."""
  rows = zip(*table, checksums, strict=True)
  return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def manifest_hash(table: Table, checksums: Sequence[str]) -> str:
  """Returns the SHA-256 of the manifest, as `sha256sum` prints it."""
  return hashlib.sha256(manifest(table, checksums).encode()).hexdigest()


def _write(
  folder: pathlib.Path,
  size: int,
  table: Table,
  images: Iterable[np.ndarray],
  checksums: Sequence[str],
) -> None:
  shape = (len(table.names), size, size, 3)
  with disk.new_folder(folder) as draft:
    # Not memory-mapped: a full disk then raises an error instead of SIGBUS.
    with open(draft / "images.npy", "wb") as f:
      header = {"descr": "|u1", "fortran_order": False, "shape": shape}
      np.lib.format.write_array_header_1_0(f, header)
      rows = 0
      for image in images:
        if image.shape != shape[1:] or image.dtype != np.uint8:
          raise ValueError(
            f"row {rows} is {image.dtype} {image.shape}, not uint8 {shape[1:]}"
          )
        f.write(image.tobytes())
        rows += 1
    if rows != shape[0]:
      raise ValueError(f"{rows} images for a table of {shape[0]} rows")
    np.savez(
      draft / "table.npz",
      labels=table.labels,
      domains=table.domains,
      splits=table.splits,
    )
    (draft / "names.txt").write_text("\n".join(table.names) + "\n", "utf-8")
    meta = {"manifest": manifest_hash(table, checksums), "size": size}
    (draft / "meta.json").write_text(json.dumps(meta), "utf-8")
