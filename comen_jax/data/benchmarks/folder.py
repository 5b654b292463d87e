"""A user's own images: root/<domain>/<class>/*, or without known domains.

The root is a folder or a zip. All domains may lie in one more folder, as they
do in a zip of a folder.

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
from comen_jax.data.ingest.problems import BadFilesError
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
  if not source.pictures:
    raise UserError(f"{source.path} holds no images: expected {LAYOUT}")
  top = _wrapper(source.pictures)
  inside = {path: path.removeprefix(top) for path in source.pictures}
  if misplaced := [p for p, name in inside.items() if name.count("/") != 2]:
    raise BadFilesError(
      [
        f"{source.path}/{path} is not inside the folder of a class and of a"
        f" domain: data_dir must hold {LAYOUT}"
        for path in misplaced
      ]
    )
  folders = {f.removeprefix(top) for f in source.folders if f.startswith(top)}
  tops = sorted({name.split("/")[0] for name in inside.values()})
  classes = sorted({f.split("/")[1] for f in folders if "/" in f})
  compound = {t.lower() for t in tops} in (
    {"train", "test"},
    {"train", "val", "test"},
  )
  domain_of = {t: _COMPOUND[t.lower()] if compound else t for t in tops}
  has_val = compound and len(tops) == 3
  domains = ["train", "test"] if compound else tops

  def entry(path: str, name: str) -> Entry:
    first, second, _ = name.split("/")
    split = None
    if has_val and domain_of[first] == "train":
      split = VAL if first.lower() == "val" else TRAIN
    domain = domains.index(domain_of[first])
    return Entry(path, name, classes.index(second), domain, split)

  entries = [entry(path, name) for path, name in inside.items()]
  _check(source, folders, domains, classes, entries)
  left_out = [
    name
    for name in source.names
    if name not in inside and "/" in name.removeprefix(top)
  ]
  return Contents(
    entries,
    tuple(classes),
    tuple(domains),
    default_target="test" if compound else "",
    complete=False,
    notices=_notices(domains, classes, entries, left_out, drawn=not has_val),
  )


def _wrapper(pictures: list[str]) -> str:
  """Returns the one folder that holds all domains, with a slash, or "".

  A zip of a folder has the folder's own name before every path. With one
  folder at the top there are no two domains, so nothing else is meant.
  """
  tops = {path.split("/")[0] for path in pictures}
  deep = sum(path.count("/") > 2 for path in pictures)
  if len(tops) == 1 and 2 * deep > len(pictures):
    return f"{tops.pop()}/"
  return ""


def _check(
  source: Archive,
  folders: set[str],
  domains: list[str],
  classes: list[str],
  entries: list[Entry],
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
  tops = {f.split("/")[0] for f in folders if "/" in f}
  if empty := sorted(tops - {e.name.split("/")[0] for e in entries}):
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
  domains: list[str],
  classes: list[str],
  entries: list[Entry],
  left_out: list[str],
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
  if left_out:
    notices.append(
      f"{len(left_out)} files without the suffix of an image are left out, such"
      f" as {left_out[0]}"
    )
  return tuple(notices)
