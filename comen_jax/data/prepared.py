"""Published files -> TFDS and manifest -> rows; each step done once.

All of it lies in the cache folder, because data may be read-only:

    prepared/<name>-<fingerprint>/   tfds/, manifest.tsv, info.json
    rows/<name>-<manifest>-<size>/   the decoded pictures

A second start goes from the files' fingerprint to the rows and reads neither
pictures nor TFDS. The same pictures in a zip and in a folder share their rows.
"""

import hashlib
import json
import pathlib
import warnings
from collections.abc import Callable
from typing import NamedTuple

import PIL

from comen_jax.data import catalogue, disk, pictures, row_store
from comen_jax.data.archive import Archive
from comen_jax.data.dataset import Dataset
from comen_jax.data.layout import Benchmark, Contents
from comen_jax.errors import UserError

_VERSION = 1  # Bumped when the same files are prepared otherwise.


class Prepared(NamedTuple):
  """A prepared data set and where it lies."""

  dataset: Dataset
  folder: pathlib.Path  # manifest.tsv, info.json and, of a benchmark, tfds/.
  rows: pathlib.Path


def benchmark(spec: Benchmark, source: Archive, size: int) -> Prepared:
  """A published data set, through TFDS."""
  return _prepare(
    spec.name,
    source,
    size,
    write=lambda folder: _builders().write(spec.name, source, folder / "tfds"),
    make_reader=lambda folder, table: _builders().reader(
      spec.name, folder / "tfds", table
    ),
  )


def pictures_of(
  name: str, source: Archive, contents: Callable[[], Contents], layout: str,
  size: int,
) -> Prepared:  # fmt: skip
  """A user's pictures, read where they are: no second copy of them."""
  return _prepare(
    name,
    source,
    size,
    write=lambda folder: catalogue.read(source, contents(), layout),
    make_reader=lambda folder, table: source.read,
  )


def _prepare(
  name: str,
  source: Archive,
  size: int,
  *,
  write: Callable[[pathlib.Path], catalogue.Catalogue],
  make_reader: Callable[..., Callable[[str], bytes]],
) -> Prepared:
  key = f"{name}-{source.fingerprint[:16]}-v{_VERSION}"
  folder = disk.cache_dir() / "prepared" / key
  if not folder.exists():
    with disk.new_folder(folder) as draft:
      _describe(draft, write(draft), source)
  info = json.loads((folder / "info.json").read_text("utf-8"))

  def build():
    table, checksums = _read_manifest(folder)
    expected = dict(zip(table.names, checksums))
    read = make_reader(folder, table)

    def checked(name: str) -> bytes:
      data = read(name)
      if hashlib.sha256(data).hexdigest() != expected[name]:
        raise UserError(
          f"{name} is not what {folder}/manifest.tsv says: delete that folder"
          " and start again"
        )
      return data

    rows = pictures.decode_all(table.names, checked, size, str(source.path))
    return table, rows, checksums

  rows_key = (
    f"{name}-{info['manifest'][:16]}-{size}-v{pictures.VERSION}"
    f"-pillow{PIL.__version__}"
  )
  store = row_store.open_or_build(rows_key, size, build)
  dataset = Dataset(
    name=name,
    images=store.images,
    labels=store.table.labels,
    domains=store.table.domains,
    splits=store.table.splits,
    class_names=tuple(info["class_names"]),
    domain_names=tuple(info["domain_names"]),
    manifest=store.manifest,
    default_target=info["default_target"],
    notice=info["notice"],
  )
  return Prepared(dataset, folder, row_store.place(rows_key))


def _describe(
  folder: pathlib.Path, found: catalogue.Catalogue, source: Archive
) -> None:
  text = row_store.manifest(found.table, found.checksums)
  (folder / "manifest.tsv").write_text(text, "utf-8")
  info = {
    "manifest": hashlib.sha256(text.encode()).hexdigest(),
    "columns": ["name", "label", "domain", "split", "sha256"],
    "class_names": found.class_names,
    "domain_names": found.domain_names,
    "split_names": ["train", "val"],
    "default_target": found.default_target,
    "notice": found.notice,
    "source": str(source.path),
  }
  (folder / "info.json").write_text(json.dumps(info, indent=2), "utf-8")


def _read_manifest(
  folder: pathlib.Path,
) -> tuple[row_store.Table, list[str]]:
  lines = (folder / "manifest.tsv").read_text("utf-8").split("\n")[:-1]
  names, labels, domains, splits, checksums = zip(
    *(line.split("\t") for line in lines)
  )
  return row_store.table(names, labels, domains, splits), list(checksums)


def _builders():
  """Imported when needed: it takes long, and a second start has no need."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Of TFDS's own dependencies.
    from comen_jax.data import tfds_builders
  return tfds_builders
