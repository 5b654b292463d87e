"""What the files of an archive are: the class and domain of each image.

Each data set has a function that reads an `Archive` and returns `Contents`.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Entry(NamedTuple):
  """One image file of an archive.

  Attributes:
    path: path of the file in the archive.
    name: name of the image in the manifest; starts with the domain's folder.
    label: index of the class in `Contents.class_names`.
    domain: index of the domain in `Contents.domain_names`.
    split: published split, `TRAIN` or `VAL`; None if it is to be drawn.
  """

  path: str
  name: str
  label: int
  domain: int
  split: int | None


class Contents(NamedTuple):
  """All images of an archive, and what to tell the user about them.

  Attributes:
    entries: image files, in any order.
    class_names: names of the classes.
    domain_names: names of the domains.
    default_target: domain to test on when the config names none, or "".
    val_share: share of validation images where the split is drawn.
    complete: whether every domain must have images of every class.
    notices: messages for the user, one line each.
  """

  entries: Sequence[Entry]
  class_names: tuple[str, ...]
  domain_names: tuple[str, ...]
  default_target: str
  val_share: float = 0.1
  complete: bool = True
  notices: tuple[str, ...] = ()
