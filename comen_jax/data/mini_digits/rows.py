"""Mini digits as a data set: drawn once, then opened from the row store."""

import hashlib
from importlib import metadata

from comen_jax.data import mini_digits, row_store
from comen_jax.data.dataset import Dataset
from comen_jax.errors import UserError

# Other versions of these libraries may draw other pixels.
_LIBRARIES = ("matplotlib", "numpy", "pillow", "scikit-learn")


def load(size: int, notice: str) -> Dataset:
  """Opens mini digits; draws them first if they are not in the cache.

  Args:
    size: side of the stored squares in pixels, which must be 32.
    notice: message for the user, or "".
  """
  if size != mini_digits.SIDE:
    raise UserError(f"store_size={size}: mini digits are 32x32, set it to 32")
  versions = "-".join(map(metadata.version, _LIBRARIES))
  key = hashlib.sha256(versions.encode()).hexdigest()[:12]
  store = row_store.open_or_build(
    f"mini_digits-v{mini_digits.VERSION}-{key}", size, _build
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


def _build():
  # Imported only to draw: matplotlib and scikit-learn take seconds.
  from comen_jax.data.mini_digits import generator

  made = generator.generate()
  table = row_store.Table(made.names, made.labels, made.domains, made.splits)
  checksums = [hashlib.sha256(i.tobytes()).hexdigest() for i in made.images]
  return table, made.images, checksums
