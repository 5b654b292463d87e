"""What a data set's own file says: which of its files are which pictures."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from comen_jax.data.archive import Archive


class Entry(NamedTuple):
  """One picture of an archive.

  Attributes:
    path: its name in the archive.
    name: what the manifest calls it; starts at the domain's folder.
    label, domain: index in the contents' class and domain names.
    split: `TRAIN` or `VAL` as published, or None: to be drawn.
  """

  path: str
  name: str
  label: int
  domain: int
  split: int | None


class Contents(NamedTuple):
  """All pictures of an archive, and what to tell the user of them.

  Attributes:
    entries: in any order.
    class_names, domain_names: what labels and domains index.
    default_target: the domain tested when the config names none, or "".
    val_share: of the pictures of a class in a domain whose split is drawn.
    complete: every domain must have every class.
    notices: one line each.
  """

  entries: Sequence[Entry]
  class_names: tuple[str, ...]
  domain_names: tuple[str, ...]
  default_target: str
  val_share: float = 0.1
  complete: bool = True
  notices: tuple[str, ...] = ()


# Train and val, or both together where only their sum is published.
Count = tuple[int, int] | int


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """A published data set.

  Attributes:
    name: as configs call it, and its TFDS builder.
    archives: names of its folder or zip; the first is ours.
    domains, classes, default_target: of every copy of it.
    layout: its files, for messages.
    source: where to get it, in words.
    scan: reads an archive's names (and lists).
    store_size: the stored square that its config uses.
    published_domains: pictures of each domain.
    published_cells: pictures of (domain, class), where known.
  """

  name: str
  archives: tuple[str, ...]
  domains: tuple[str, ...]
  classes: tuple[str, ...]
  default_target: str
  layout: str
  source: str
  scan: Callable[[Archive], Contents]
  store_size: int
  published_domains: Mapping[str, Count]
  published_cells: Mapping[tuple[str, str], Count]

  @property
  def advice(self) -> str:
    """One line: what to get from where, and where to put it."""
    first, *others = self.archives
    also = f" (or {', '.join(others)})" if others else ""
    return (
      f"get it from {self.source}, and put {first}.zip or the folder"
      f" {first}/{also} with {self.layout} inside into the folder that"
      " data_dir names"
    )

  def contents(self, entries: Sequence[Entry], **more) -> Contents:
    return Contents(
      entries, self.classes, self.domains, self.default_target, **more
    )
