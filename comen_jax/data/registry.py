"""Data sets by name, as rows of uint8 pictures."""

import hashlib
import pathlib

from comen_jax.data import (
  archive,
  digits_dg,
  folder,
  mini_digits,
  office_home,
  pacs,
  prepared,
  row_store,
  vlcs,
)
from comen_jax.data.dataset import Dataset
from comen_jax.errors import UserError

BENCHMARKS = {
  module.BENCHMARK.name: module.BENCHMARK
  for module in (digits_dg, pacs, vlcs, office_home)
}
_MINI_NOTICE = (
  "data_dir is empty: training on mini digits, the built-in stand-in. For the"
  " benchmark, put digits_dg/ or digits_dg.zip (README, 'Data') in a folder D"
  " and give --config.data_dir=D"
)


def load(name: str, data_dir: str, size: int) -> Dataset:
  """The data set `name`, decoded to squares of `size`; prepared if needed.

  "digits_dg" with an empty `data_dir` is mini digits, and says so.
  """
  if name == "mini_digits" or (name == "digits_dg" and not data_dir):
    notice = _MINI_NOTICE if name == "digits_dg" else ""
    return _mini_digits(size, notice)
  return load_prepared(name, data_dir, size).dataset


def load_prepared(name: str, data_dir: str, size: int) -> prepared.Prepared:
  """Prepares a benchmark, or a folder of pictures, from the files given."""
  if name not in BENCHMARKS and name != "folder":
    names = ", ".join([*BENCHMARKS, "folder", "mini_digits"])
    raise UserError(f"dataset={name!r} is unknown: choose one of {names}")
  if size < 1:
    raise UserError(f"store_size={size}: give 1 or more")
  if name == "folder":
    root = pathlib.Path(data_dir).expanduser()
    if not data_dir or not root.is_dir():
      raise UserError(
        f"data_dir={data_dir} is no folder: give one with {folder.LAYOUT}"
      )
    source = archive.Archive(root)
    contents = lambda: folder.scan(source)
    return prepared.pictures_of(name, source, contents, folder.LAYOUT, size)
  spec = BENCHMARKS[name]
  if not data_dir:
    raise UserError(
      f"data_dir is empty, but {name} is asked for: {spec.advice}"
    )
  source = archive.find(data_dir, spec.archives, spec.advice)
  return prepared.benchmark(spec, source, size)


def _mini_digits(size: int, notice: str) -> Dataset:
  if size != 32:
    raise UserError(f"store_size={size}: mini digits are 32x32, set it to 32")

  def build():
    made = mini_digits.generate()
    table = row_store.Table(made.names, made.labels, made.domains, made.splits)
    checksums = [hashlib.sha256(i.tobytes()).hexdigest() for i in made.images]
    return table, made.images, checksums

  store = row_store.open_or_build(
    f"mini_digits-v{mini_digits.VERSION}-{_library_key()}", size, build
  )
  return Dataset(
    name="mini_digits",
    images=store.images,
    labels=store.table.labels,
    domains=store.table.domains,
    splits=store.table.splits,
    class_names=mini_digits.CLASSES,
    domain_names=mini_digits.DOMAINS,
    manifest=store.manifest,
    default_target=mini_digits.DEFAULT_TARGET,
    notice=notice,
  )


def _library_key() -> str:
  """The libraries that draw: other versions may draw other pixels."""
  import matplotlib
  import numpy
  import PIL
  import sklearn

  modules = (matplotlib, numpy, PIL, sklearn)
  versions = "-".join(m.__version__ for m in modules)
  return hashlib.sha256(versions.encode()).hexdigest()[:12]
