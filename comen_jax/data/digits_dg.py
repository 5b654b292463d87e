"""Digits-DG as published: four domains of 600 images per class."""

import re

import numpy as np
import PIL

from comen_jax.data import archive, pictures, row_store
from comen_jax.errors import UserError

DOMAINS = ("mnist", "mnist_m", "svhn", "syn")
CLASSES = tuple("0123456789")
DEFAULT_TARGET = "mnist_m"
LAYOUT = "{mnist,mnist_m,svhn,syn}/{train,val}/{0..9}/*.jpg"
_MEMBER = re.compile(
  r"(mnist|mnist_m|svhn|syn)/(train|val)/([0-9])/[^/]+\.(?i:jpe?g|png)"
)


def load(data_dir: str, size: int) -> row_store.Store:
  """Rows of the folder or zip `digits_dg` in `data_dir`."""
  source = archive.find(data_dir, "digits_dg", LAYOUT)

  def build():
    table = _table(source)
    checksums: list[str] = []
    rows = pictures.decode_all(
      table.names, source.read, size, checksums, "digits_dg"
    )
    return table, rows, checksums

  key = f"digits_dg-{source.fingerprint[:16]}-{size}-pillow{PIL.__version__}"
  return row_store.open_or_build(key, size, build)


def _table(source: archive.Archive) -> row_store.Table:
  found = [m for m in map(_MEMBER.fullmatch, source.names) if m]
  present = {m[1] for m in found}
  if missing := [d for d in DOMAINS if d not in present]:
    raise UserError(
      f"{source.path} has no pictures of {', '.join(missing)}:"
      f" expected {LAYOUT} inside"
    )
  return row_store.Table(
    names=[m[0] for m in found],
    labels=np.array([int(m[3]) for m in found], np.int32),
    domains=np.array([DOMAINS.index(m[1]) for m in found], np.int32),
    splits=np.array([m[2] == "val" for m in found], np.uint8),
  )
