"""Takes a data set from its files to rows; each step runs only once.

    files -> catalogue -> prepared/<name>-<fingerprint>/ -> rows/<name>-...

Both folders lie in the cache, because the data may be read-only:

    prepared/<name>-<fingerprint>/   manifest.tsv, info.json and, for a
                                     benchmark, tfds/
    rows/<name>-<manifest>-<size>/   decoded images

A second start finds the rows by the fingerprint of the files. It reads no
image and no TFDS. A zip and a folder with the same images share their rows.
"""

import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import PIL

from comen_jax.data import disk, row_store
from comen_jax.data.dataset import Dataset
from comen_jax.data.ingest import pictures
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.catalogue import Catalogue
from comen_jax.errors import UserError

_VERSION = 1  # Increase when the same files are prepared differently.

Read = Callable[[str], bytes]  # Returns the bytes of the image of that name.


class Prepared(NamedTuple):
  """A prepared data set and its folders.

  Attributes:
    dataset: the data set.
    folder: folder of manifest.tsv, info.json and, for a benchmark, tfds/.
    rows: folder of the decoded images.
  """

  dataset: Dataset
  folder: pathlib.Path
  rows: pathlib.Path


def prepare(
  name: str,
  source: Archive,
  size: int,
  *,
  write: Callable[[pathlib.Path], Catalogue],
  make_reader: Callable[[pathlib.Path, row_store.Table], Read],
) -> Prepared:
  """Prepares the images of `source`, or finds them prepared.

  Args:
    name: name of the data set.
    source: files of the data set.
    size: side of the stored squares, in pixels.
    write: reads all images, may copy them into the given folder, and returns
      the catalogue.
    make_reader: returns a function that reads an image by name, from the folder
      that `write` has filled.
  """
  key = f"{name}-{source.fingerprint[:16]}-v{_VERSION}"
  folder = disk.cache_dir() / "prepared" / key
  if not folder.exists():
    with disk.new_folder(folder) as draft:
      _describe(draft, write(draft), source)
  info = json.loads((folder / "info.json").read_text("utf-8"))

  def build():
    table, checksums = _read_manifest(folder)
    read = _checked(make_reader(folder, table), folder, table, checksums)
    rows = pictures.decode_all(table.names, read, size, str(source.path))
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


def _describe(folder: pathlib.Path, found: Catalogue, source: Archive) -> None:
  """Writes manifest.tsv and info.json."""
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
  """Returns the table and the checksums of manifest.tsv."""
  lines = (folder / "manifest.tsv").read_text("utf-8").split("\n")[:-1]
  names, labels, domains, splits, checksums = zip(
    *(line.split("\t") for line in lines)
  )
  return row_store.table(names, labels, domains, splits), list(checksums)


def _checked(
  read: Read,
  folder: pathlib.Path,
  table: row_store.Table,
  checksums: list[str],
) -> Read:
  """Wraps `read` so that it compares every image with its checksum."""
  expected = dict(zip(table.names, checksums))

  def checked(name: str) -> bytes:
    data = read(name)
    if hashlib.sha256(data).hexdigest() != expected[name]:
      raise UserError(
        f"{name} does not match its checksum in {folder}/manifest.tsv: delete"
        " that folder and start again"
      )
    return data

  return checked
