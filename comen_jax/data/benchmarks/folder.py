"""A user's own images: root/<domain>/<class>/*, or without known domains.

Without known domains, the folders are root/train/<class>/*, root/test/<class>/*
and perhaps root/val/<class>/*. Then train is the only source, whatever domains
it mixes, and test is the target.
"""

import os
import pathlib
import re
from collections.abc import Container

from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry
from comen_jax.errors import UserError

LAYOUT = "<domain>/<class>/<image> or {train,test}/<class>/<image>"
_COMPOUND = {"train": "train", "val": "train", "test": "test"}
_MOST_LETTERS = 40  # Names of runs begin with it, and file names have limits.


def name_of(data_dir: str, taken: Container[str]) -> str:
  """Names a user's data set after its folder or zip.

  What is no letter, digit, dot, hyphen or underscore becomes an underscore, so
  that the name can be part of a file name.

  Args:
    data_dir: path of the folder or zip.
    taken: names of other data sets; results must not be taken for theirs.
  """
  path = pathlib.Path(os.path.abspath(os.path.expanduser(data_dir)))
  text = path.stem if path.suffix.lower() == ".zip" else path.name
  name = re.sub(r"[^\w.-]+", "_", text)[:_MOST_LETTERS].strip("._-")
  if not name:
    return "folder"
  return f"{name}_folder" if name.lower() in taken else name


def scan(source: Archive) -> Contents:
  """Takes domains and classes from the names of the folders, sorted."""
  for path in source.pictures:
    if path.count("/") != 2:
      raise UserError(
        f"{source.path}/{path} is not inside the folder of a class and of a"
        f" domain: data_dir must hold {LAYOUT}"
      )
  if not source.pictures:
    raise UserError(f"{source.path} holds no images: expected {LAYOUT}")
  tops = sorted({p.split("/")[0] for p in source.pictures})
  classes = sorted({f.split("/")[1] for f in source.folders if "/" in f})
  compound = {t.lower() for t in tops} in (
    {"train", "test"},
    {"train", "val", "test"},
  )
  domain_of = {t: _COMPOUND[t.lower()] if compound else t for t in tops}
  has_val = compound and len(tops) == 3
  domains = ["train", "test"] if compound else tops

  def entry(path: str) -> Entry:
    top, name, _ = path.split("/")
    split = None
    if has_val and domain_of[top] == "train":
      split = VAL if top.lower() == "val" else TRAIN
    domain = domains.index(domain_of[top])
    return Entry(path, path, classes.index(name), domain, split)

  entries = [entry(path) for path in source.pictures]
  _check(source, domains, classes, entries)
  return Contents(
    entries,
    tuple(classes),
    tuple(domains),
    default_target="test" if compound else "",
    complete=False,
    notices=_notices(source, domains, classes, entries, drawn=not has_val),
  )


def _check(
  source: Archive, domains: list[str], classes: list[str], entries: list[Entry]
) -> None:
  if len(domains) < 2:
    raise UserError(
      f"{source.path} has only one domain, {domains[0]}: give two or more, one"
      " of them to test on"
    )
  if len(classes) < 2:
    raise UserError(
      f"{source.path} has only one class, {classes[0]}: give two or more"
    )
  tops = {f.split("/")[0] for f in source.folders if "/" in f}
  if empty := sorted(tops - {e.path.split("/")[0] for e in entries}):
    raise UserError(
      f"{source.path}: domain {empty[0]} has no images: add some, or remove its"
      " folder"
    )
  present = {e.label for e in entries}
  for label, name in enumerate(classes):
    if label not in present:
      raise UserError(
        f"{source.path}: class {name} has no images: add some, or remove its"
        " empty folders"
      )


def _notices(
  source: Archive,
  domains: list[str],
  classes: list[str],
  entries: list[Entry],
  drawn: bool,
) -> tuple[str, ...]:
  notices = []
  if drawn:
    notices.append("10 % of each class and domain are drawn for validation")
  cells = {(e.domain, e.label) for e in entries}
  missing = [
    f"{name} in {domain}"
    for d, domain in enumerate(domains)
    for k, name in enumerate(classes)
    if (d, k) not in cells
  ]
  if missing:
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    notices.append(f"there are no images of {', '.join(missing[:3])}{more}")
  known = set(source.pictures)
  if other := [n for n in source.names if n not in known and "/" in n]:
    notices.append(
      f"{len(other)} files without the suffix of an image are left out, such as"
      f" {other[0]}"
    )
  return tuple(notices)
