"""Which runs are drawn: DeepAll beside COMEN, for each data set and target."""

import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from comen_jax.report.grouping import by_dataset, data_title, targets_of
from comen_jax.report.records import Record
from comen_jax.variants import VARIANTS

_PAIR = ("deepall", "comen")


class Method(NamedTuple):
  """A row of the tables on one target.

  Attributes:
    title: as tables print it.
    colour: DeepAll 0, COMEN 1, whether the other is there or not.
    num_domains: M, whether the method makes use of it or not.
    seed: whose arrays are drawn: the lowest that has any, else -1.
    analysis: its analysis.npz, or None.
    logs: metrics.jsonl of every seed that has one, in order of seeds.
  """

  title: str
  colour: int
  num_domains: int
  seed: int
  analysis: pathlib.Path | None
  logs: tuple[pathlib.Path, ...]


class Task(NamedTuple):
  dataset: str
  target: str
  methods: tuple[Method, ...]

  @property
  def title(self) -> str:
    return f"{data_title(self.dataset)}, target {self.target}"


def tasks(records: Iterable[Record]) -> tuple[Task, ...]:
  """In the order of tables; records without a folder are left out.

  Where neither DeepAll nor COMEN was run, the first two other rows stand in.
  """
  groups: dict[tuple[str, str], list[Record]] = {}
  for record in records:
    if record.folder is not None:
      place = record.measured["dataset"], record.measured["target"]
      groups.setdefault(place, []).append(record)
  return tuple(
    Task(*place, _methods(_alike(groups[place])))
    for dataset, own in by_dataset(list(records)).items()
    for target in targets_of(own)
    if (place := (dataset, target)) in groups
  )


def _alike(records: list[Record]) -> list[Record]:
  """Runs on the same data, from the same weights, equally long.

  Of several kinds, the one with most runs; tables have them all.
  """
  kinds: dict[tuple, list[Record]] = {}
  for record in records:
    m = record.measured
    kind = m["manifest"], m.get("weights", ""), m["epochs"]
    kinds.setdefault(kind, []).append(record)
  return max(kinds.values(), key=len)


def _methods(records: list[Record]) -> tuple[Method, ...]:
  by_row: dict[str, list[Record]] = {}
  for record in records:
    by_row.setdefault(record.row, []).append(record)
  pair = _PAIR
  if "deepall" not in by_row:
    pair = ("deepall_bn", "comen")  # DeepAll all the same, normalised.
  shown = [row for row in pair if row in by_row] or list(by_row)[:2]
  colours = [pair.index(r) if r in pair else n for n, r in enumerate(shown)]
  return tuple(_method(r, c, by_row[r]) for r, c in zip(shown, colours))


def _method(row: str, colour: int, records: list[Record]) -> Method:
  num_domains = _one_size(records)
  runs = sorted(
    (r for r in records if r.measured["num_domains"] == num_domains),
    key=lambda r: r.measured["seed"],
  )
  analysed = [r for r in runs if (r.folder / "analysis.npz").exists()]
  logs = [r.folder / "metrics.jsonl" for r in runs]
  return Method(
    VARIANTS[row].title if row in VARIANTS else row,
    colour,
    num_domains,
    analysed[0].measured["seed"] if analysed else -1,
    analysed[0].folder / "analysis.npz" if analysed else None,
    tuple(log for log in logs if log.exists()),
  )


def _one_size(records: list[Record]) -> int:
  """Of several M, the one nearest to the number of sources."""
  return min(
    (r.measured for r in records),
    key=lambda m: (
      abs(m["num_domains"] - len(m["sources"])),
      m["num_domains"],
    ),
  )["num_domains"]
