"""What the file of a published data set defines."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry

# (train, val), or their sum where only the sum is published.
Count = tuple[int, int] | int


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """A published data set.

  Attributes:
    name: name in configs, and of its TFDS builder.
    archives: accepted names of its folder or zip, in order of preference.
    domains: names of the domains.
    classes: names of the classes.
    default_target: domain to test on when the config names none.
    layout: expected files, for error messages.
    source: where to get the data set, in words.
    scan: finds the images of an archive, with their classes and domains.
    store_size: side of the stored squares in its config, in pixels.
    published_domains: published number of images of each domain.
    published_cells: published number of images of each (domain, class).
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
    """One line: where to get the data set and where to put it."""
    first, *others = self.archives
    also = f" (or {', '.join(others)})" if others else ""
    return (
      f"get it from {self.source}, and put {first}.zip or the folder"
      f" {first}/{also}, with {self.layout} inside, into the folder that"
      " data_dir names"
    )

  def contents(
    self,
    entries: Sequence[Entry],
    val_share: float = 0.1,
    notices: Sequence[str] = (),
  ) -> Contents:
    """Returns these entries with the names of the classes and domains."""
    return Contents(
      entries,
      self.classes,
      self.domains,
      self.default_target,
      val_share,
      notices=tuple(notices),
    )
