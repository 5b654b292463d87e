"""Chooses the runs to draw: DeepAll beside COMEN, per data set and target."""

import pathlib
from typing import NamedTuple

from comen_jax.report.grouping import (
  Comparison,
  by_dataset,
  comparisons,
  data_title,
  targets_of,
)
from comen_jax.report.records import Record, setting_of
from comen_jax.variants import VARIANTS

_PAIR = ("deepall", "comen")


class Method(NamedTuple):
  """The runs of a row on one target.

  Attributes:
    title: name of the row, as in the tables.
    colour: index of `Theme.methods`; always 0 for DeepAll, 1 for COMEN.
    num_domains: M, 0 for a method without latent domains.
    seed: lowest seed that has an analysis.npz, -1 if none has.
    analysis: analysis.npz of that seed, or None.
    logs: metrics.jsonl of every seed that has one, in order of seeds.
  """

  title: str
  colour: int
  num_domains: int
  seed: int
  analysis: pathlib.Path | None
  logs: tuple[pathlib.Path, ...]


class Task(NamedTuple):
  """What a figure is about.

  Attributes:
    dataset: name of the data set.
    target: name of the target domain.
    title: data set and target; if the report has runs of several epochs, data
      or weights, also which of them are drawn.
    methods: methods to draw side by side.
  """

  dataset: str
  target: str
  title: str
  methods: tuple[Method, ...]


def tasks(records: list[Record]) -> tuple[Task, ...]:
  """Returns the tasks in the order of tables, of the runs that have a folder.

  If neither DeepAll nor COMEN was run, the first two other rows are drawn.
  """
  found = []
  for dataset, own in by_dataset(records).items():
    several = comparisons(own)
    for target in targets_of(own):
      name, runs = _most_runs(several, target)
      if runs:
        if len(several) == 1:
          name = data_title(dataset)
        title = f"{name}, target {target}"
        found.append(Task(dataset, target, title, _methods(runs)))
  return tuple(found)


def _most_runs(
  several: list[Comparison], target: str
) -> tuple[str, list[Record]]:
  """Returns the comparison with most runs on a target: its title, its runs.

  Only runs that have a folder count. Of equals, the last one wins: it has most
  epochs.
  """
  found = [
    (
      comparison.title,
      [
        record
        for record in comparison.records
        if record.folder and record.measured["target"] == target
      ],
    )
    for comparison in several
  ]
  return max(reversed(found), key=lambda one: len(one[1]))


def _methods(records: list[Record]) -> tuple[Method, ...]:
  by_row: dict[str, list[Record]] = {}
  for record in records:
    by_row.setdefault(record.row, []).append(record)
  pair = _PAIR
  if "deepall" not in by_row:
    pair = ("deepall_bn", "comen")  # Also DeepAll, with BatchNorm.
  shown = [row for row in pair if row in by_row] or list(by_row)[:2]
  colours = [pair.index(r) if r in pair else n for n, r in enumerate(shown)]
  return tuple(_method(r, c, by_row[r]) for r, c in zip(shown, colours))


def _method(row: str, colour: int, records: list[Record]) -> Method:
  num_domains = _one_size(records)
  runs = sorted(
    (r for r in records if setting_of(r).num_domains == num_domains),
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
  """Returns the M that is nearest to the number of sources."""
  sources = len(records[0].measured["sources"])
  sizes = sorted({setting_of(r).num_domains for r in records})
  return min(sizes, key=lambda size: abs(size - sources))
