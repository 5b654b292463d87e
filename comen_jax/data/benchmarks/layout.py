"""What a data set's own file says: which of its files are which pictures."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry

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
