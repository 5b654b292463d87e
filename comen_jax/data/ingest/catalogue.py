"""Checks the contents of an archive; adds checksums and splits."""

import functools
import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from comen_jax.data import row_store
from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest import parallel, pictures, splits
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry
from comen_jax.data.ingest.problems import BadFilesError, problems_of
from comen_jax.errors import UserError


class Catalogue(NamedTuple):
  """The images of an archive, sorted by name: the data of a manifest.

  Attributes:
    table: name, label, domain and split of each image.
    checksums: SHA-256 of the bytes of each image.
    sizes: number of bytes of each image.
    paths: paths of the images in the archive.
    class_names: names of the classes.
    domain_names: names of the domains.
    default_target: domain to test on when the config names none, or "".
    notice: one line for the user, or "".
  """

  table: row_store.Table
  checksums: list[str]
  sizes: list[int]
  paths: list[str]
  class_names: tuple[str, ...]
  domain_names: tuple[str, ...]
  default_target: str
  notice: str


def read(
  source: Archive, scan: Callable[[Archive], Contents], layout: str
) -> Catalogue:
  """Checks the contents and reads every image once.

  One error reports all files that cannot be used. If the layout is wrong, the
  images are not read.

  Args:
    source: the archive.
    scan: finds the images of the archive, with their classes and domains.
    layout: expected layout, for error messages.
  """
  try:
    contents = scan(source)
    entries = _checked(source, contents, layout)
  except UserError as e:
    raise BadFilesError([*source.problems, *problems_of(e)]) from e
  names = [e.name for e in entries]
  paths = [e.path for e in entries]
  checksums, sizes = _read_all(source, paths)
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
    sizes=sizes,
    paths=paths,
    class_names=contents.class_names,
    domain_names=contents.domain_names,
    default_target=contents.default_target,
    notice="; ".join(contents.notices),
  )


def _checked(source: Archive, contents: Contents, layout: str) -> list[Entry]:
  """Returns the entries, sorted by name, each name once."""
  entries = sorted(contents.entries, key=lambda e: (e.name, e.path))
  if twice := [
    f"{source.path} contains {one.name} twice, as {one.path} and {other.path}:"
    " remove one copy"
    for one, other in itertools.pairwise(entries)
    if one.name == other.name
  ]:
    raise BadFilesError(twice)
  if contents.complete:
    _check_complete(source, contents, entries, layout)
  return entries


def _read_all(
  source: Archive, paths: Sequence[str]
) -> tuple[list[str], list[int]]:
  """Returns the checksum and size of each image, or reports all bad files."""
  label = f"reading {source.path.name}"
  found = list(
    parallel.in_order(functools.partial(_digest, source), paths, label)
  )
  problems = [*source.problems, *(str(f) for f in found if _is_bad(f))]
  if problems:
    whole = [path for path, f in zip(paths, found) if not _is_bad(f)]
    problems += pictures.undecodable(whole, source.read, str(source.path))
    raise BadFilesError(problems)
  return [checksum for checksum, _ in found], [size for _, size in found]


def _digest(source: Archive, path: str) -> tuple[str, int] | UserError:
  """Returns the SHA-256 and the size of a file, or why it cannot be read."""
  digest, size = hashlib.sha256(), 0
  try:
    for part in source.parts(path):
      digest.update(part)
      size += len(part)
  except UserError as e:
    return e
  return digest.hexdigest(), size


def _is_bad(found: tuple[str, int] | UserError) -> bool:
  return isinstance(found, UserError)


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
