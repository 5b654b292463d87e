"""An archive's pictures, checked, with checksums and splits."""

import concurrent.futures
import hashlib
import itertools
import os
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from comen_jax.data import splits
from comen_jax.data.archive import Archive
from comen_jax.data.layout import Contents
from comen_jax.data.row_store import Table
from comen_jax.errors import UserError


class Catalogue(NamedTuple):
  """What a manifest is made of.

  Attributes:
    table: of each picture, sorted by name.
    checksums: sha256 of each picture's bytes.
    paths: names in the archive.
    class_names, domain_names, default_target: as in `Contents`.
    notice: one line for the user, or "".
  """

  table: Table
  checksums: list[str]
  paths: list[str]
  class_names: tuple[str, ...]
  domain_names: tuple[str, ...]
  default_target: str
  notice: str


def read(source: Archive, contents: Contents, layout: str) -> Catalogue:
  """Checks the contents and reads every picture once.

  Args:
    source: the archive.
    contents: what its names say.
    layout: what is expected, for messages.
  """
  entries = sorted(contents.entries, key=lambda e: (e.name, e.path))
  for one, other in itertools.pairwise(entries):
    if one.name == other.name:
      raise UserError(
        f"{source.path} has {one.name} twice, {one.path} and {other.path}:"
        " remove one copy"
      )
  labels = np.array([e.label for e in entries], np.int32)
  domains = np.array([e.domain for e in entries], np.int32)
  if contents.complete:
    _check_complete(source, contents, labels, domains, layout)
  names = [e.name for e in entries]
  checksums = _checksums(source, [e.path for e in entries])
  drawn = splits.draw(
    [(e.domain, e.label) for e in entries],
    names,
    checksums,
    contents.val_share,
  )
  chosen = [d if e.split is None else e.split for e, d in zip(entries, drawn)]
  return Catalogue(
    table=Table(names, labels, domains, np.array(chosen, np.uint8)),
    checksums=checksums,
    paths=[e.path for e in entries],
    class_names=contents.class_names,
    domain_names=contents.domain_names,
    default_target=contents.default_target,
    notice="; ".join(contents.notices),
  )


def _check_complete(
  source: Archive,
  contents: Contents,
  labels: np.ndarray,
  domains: np.ndarray,
  layout: str,
) -> None:
  shape = len(contents.domain_names), len(contents.class_names)
  cells = np.zeros(shape, int)
  np.add.at(cells, (domains, labels), 1)
  missing = np.argwhere(cells == 0)
  if not len(missing):
    return
  absent = [d for d, c in zip(contents.domain_names, cells) if not c.any()]
  if absent:
    what = ", ".join(absent)
  else:
    domain, label = missing[0]
    what = (
      f"class {contents.class_names[label]} in domain"
      f" {contents.domain_names[domain]}"
    )
    if len(missing) > 1:
      what += f" (and of {len(missing) - 1} more classes)"
  raise UserError(
    f"{source.path} has no pictures of {what}: expected {layout} inside"
  )


def _checksums(source: Archive, paths: list[str]) -> list[str]:
  one = lambda path: hashlib.sha256(source.read(path)).hexdigest()
  bar = tqdm(
    total=len(paths), desc=f"reading {source.path.name}", unit="img",
    disable=None,
  )  # fmt: skip
  found = []
  with bar, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for start in range(0, len(paths), 1024):  # An error shows within one.
      for checksum in pool.map(one, paths[start : start + 1024]):
        found.append(checksum)
        bar.update()
  return found
