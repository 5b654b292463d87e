"""Loads a data set by its name.

The first call prepares the data set, later calls open the prepared rows.
"""

import dataclasses
import os
import pathlib
import zipfile

from comen_jax.data.benchmarks import BENCHMARKS, folder
from comen_jax.data.benchmarks.layout import Benchmark
from comen_jax.data.dataset import Dataset
from comen_jax.data.ingest import archive, catalogue, pipeline
from comen_jax.data.mini_digits import rows
from comen_jax.errors import UserError

NAMES = (*BENCHMARKS, "folder", "mini_digits")
_MINI_NOTICE = (
  "data_dir is empty: training on mini digits, the built-in stand-in. For the"
  " benchmark, put digits_dg/ or digits_dg.zip (see docs/data.md) into a folder"
  " D and give --config.data_dir=D"
)


def load(name: str, data_dir: str, size: int) -> Dataset:
  """Returns the data set `name`; prepares it first if that is needed.

  Args:
    name: a benchmark, "folder" or "mini_digits". "digits_dg" with an empty
      `data_dir` gives mini digits with a notice.
    data_dir: folder of the data set's files, or their zip; mini digits need
      none.
    size: side of the stored squares, in pixels.
  """
  if name == "mini_digits" or (name == "digits_dg" and not data_dir):
    notice = _MINI_NOTICE if name == "digits_dg" else ""
    return rows.load(size, notice)
  return load_prepared(name, data_dir, size).dataset


def shown_name(name: str, data_dir: str) -> str:
  """Returns the name in results; that of "folder" is its folder's."""
  if name != "folder":
    return name
  return folder.name_of(data_dir, taken=(*BENCHMARKS, "mini_digits"))


def load_prepared(name: str, data_dir: str, size: int) -> pipeline.Prepared:
  """Loads a benchmark or "folder", and says where its prepared files are."""
  if name not in BENCHMARKS and name != "folder":
    names = ", ".join(NAMES)
    raise UserError(f"dataset={name!r} is unknown: choose one of {names}")
  if size < 1:
    raise UserError(f"store_size={size}: give 1 or more")
  if name == "folder":
    return _folder(data_dir, size)
  return _benchmark(BENCHMARKS[name], data_dir, size)


def _benchmark(spec: Benchmark, data_dir: str, size: int) -> pipeline.Prepared:
  """Prepares a published data set through TFDS."""
  if not data_dir:
    raise UserError(
      f"data_dir is empty, but dataset={spec.name} needs files: {spec.advice}"
    )
  source = archive.find(data_dir, spec.archives, spec.advice)
  return pipeline.prepare(
    spec.name,
    source,
    size,
    write=lambda folder: _builders().write(spec.name, source, folder / "tfds"),
    make_reader=lambda folder, table: _builders().reader(
      spec.name, folder / "tfds", table
    ),
  )


def _folder(data_dir: str, size: int) -> pipeline.Prepared:
  """Prepares a user's own images. They are read in place, not copied."""
  source = archive.Archive(_own_path(data_dir))
  found = pipeline.prepare(
    "folder",
    source,
    size,
    write=lambda _: catalogue.read(source, folder.scan, folder.LAYOUT),
    make_reader=lambda *_: source.read,
  )
  name = shown_name("folder", data_dir)
  dataset = dataclasses.replace(found.dataset, name=name, own=True)
  return found._replace(dataset=dataset)


def _own_path(data_dir: str) -> pathlib.Path:
  """Returns the path of a user's folder or zip."""
  wanted = f"give a folder or a zip with {folder.LAYOUT}"
  if not data_dir:
    raise UserError(f"data_dir is empty: {wanted}")
  path = pathlib.Path(data_dir).expanduser()
  if not os.path.exists(path):
    raise UserError(f"data_dir={data_dir} does not exist: {wanted}")
  # A damaged zip is recognised by its suffix, so that the error says so.
  is_zip = path.is_file() and (
    path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)
  )
  if not is_zip and not path.is_dir():
    raise UserError(f"data_dir={data_dir} is no folder and no zip: {wanted}")
  return path


def _builders():
  """Imports TFDS only when it is needed: the import takes seconds."""
  from comen_jax.data.benchmarks import tfds_builders

  return tfds_builders
