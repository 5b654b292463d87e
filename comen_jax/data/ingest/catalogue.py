"""Checks the contents of an archive; adds checksums and splits."""

import hashlib
import itertools
from typing import NamedTuple

from comen_jax.data import row_store
from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest import parallel, splits
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry
from comen_jax.errors import UserError


class Catalogue(NamedTuple):
  """The images of an archive, sorted by name: the data of a manifest.

  Attributes:
    table: name, label, domain and split of each image.
    checksums: SHA-256 of the bytes of each image.
    paths: paths of the images in the archive.
    class_names: names of the classes.
    domain_names: names of the domains.
    default_target: domain to test on when the config names none, or "".
    notice: one line for the user, or "".
  """

  table: row_store.Table
  checksums: list[str]
  paths: list[str]
  class_names: tuple[str, ...]
  domain_names: tuple[str, ...]
  default_target: str
  notice: str


def read(source: Archive, contents: Contents, layout: str) -> Catalogue:
  """Checks the contents and reads every image once.

  Args:
    source: the archive.
    contents: class and domain of each image.
    layout: expected layout, for error messages.
  """
  entries = sorted(contents.entries, key=lambda e: (e.name, e.path))
  for one, other in itertools.pairwise(entries):
    if one.name == other.name:
      raise UserError(
        f"{source.path} contains {one.name} twice, as {one.path} and"
        f" {other.path}: remove one copy"
      )
  if contents.complete:
    _check_complete(source, contents, entries, layout)
  names = [e.name for e in entries]
  paths = [e.path for e in entries]
  checksum = lambda path: hashlib.sha256(source.read(path)).hexdigest()
  label = f"reading {source.path.name}"
  checksums = list(parallel.in_order(checksum, paths, label))
  drawn = splits.draw(
    [(e.domain, e.label) for e in entries],
    names,
    checksums,
    contents.val_share,
  )
  chosen = [d if e.split is None else e.split for e, d in zip(entries, drawn)]
  return Catalogue(
    table=row_store.table(
      names, [e.label for e in entries], [e.domain for e in entries], chosen
    ),
    checksums=checksums,
    paths=paths,
    class_names=contents.class_names,
    domain_names=contents.domain_names,
    default_target=contents.default_target,
    notice="; ".join(contents.notices),
  )


def _check_complete(
  source: Archive, contents: Contents, entries: list[Entry], layout: str
) -> None:
  """Requires every class in every domain, and in both splits if published."""
  parts = (TRAIN, VAL) if all(e.split is not None for e in entries) else (None,)
  have = {(e.domain, e.label, e.split) for e in entries}
  missing = [
    cell
    for cell in itertools.product(
      range(len(contents.domain_names)),
      range(len(contents.class_names)),
      parts,
    )
    if cell not in have
  ]
  if not missing:
    return
  present = {e.domain for e in entries}
  absent = [
    name for d, name in enumerate(contents.domain_names) if d not in present
  ]
  if absent:
    what = ", ".join(absent)
  else:
    domain, label, split = missing[0]
    kind = {None: "", TRAIN: " for training", VAL: " for validation"}[split]
    what = (
      f"class {contents.class_names[label]} in domain"
      f" {contents.domain_names[domain]}{kind}"
    )
    if len(missing) > 1:
      what += f" (and {len(missing) - 1} more are missing)"
  raise UserError(
    f"{source.path} has no images of {what}: expected {layout} inside"
  )
