"""Data sets by name, as rows of uint8 pictures."""

import hashlib

from comen_jax.data import digits_dg, mini_digits, row_store
from comen_jax.data.dataset import Dataset
from comen_jax.errors import UserError

_MINI_NOTICE = (
  "data_dir is empty: training on mini digits, the built-in stand-in. For the"
  " benchmark, put digits_dg/ or digits_dg.zip (README, 'Data') in a folder D"
  " and give --config.data_dir=D"
)


def load(name: str, data_dir: str, size: int) -> Dataset:
  """The data set `name`, decoded to squares of `size`.

  "digits_dg" with an empty `data_dir` is mini digits, and says so.
  """
  if name == "mini_digits" or (name == "digits_dg" and not data_dir):
    notice = _MINI_NOTICE if name == "digits_dg" else ""
    return _mini_digits(size, notice)
  if name == "digits_dg":
    store = digits_dg.load(data_dir, size)
    return _dataset(name, store, digits_dg)
  raise UserError(
    f"dataset={name!r} is unknown: choose one of digits_dg, mini_digits"
  )


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
  return _dataset("mini_digits", store, mini_digits, notice)


def _library_key() -> str:
  """The libraries that draw: other versions may draw other pixels."""
  import matplotlib
  import numpy
  import PIL
  import sklearn

  modules = (matplotlib, numpy, PIL, sklearn)
  versions = "-".join(m.__version__ for m in modules)
  return hashlib.sha256(versions.encode()).hexdigest()[:12]


def _dataset(name, store: row_store.Store, source, notice: str = "") -> Dataset:
  return Dataset(
    name=name,
    images=store.images,
    labels=store.table.labels,
    domains=store.table.domains,
    splits=store.table.splits,
    class_names=source.CLASSES,
    domain_names=source.DOMAINS,
    manifest=store.manifest,
    default_target=source.DEFAULT_TARGET,
    notice=notice,
  )
