"""Chooses the runs to draw: two rows per data set and target.

They are DeepAll and COMEN; where one of them is missing, other rows take its
place, in the order of the tables.
"""

import pathlib
from typing import Any, NamedTuple

from comen_jax.report.damage import Tell, warn
from comen_jax.report.grouping import (
  Comparison,
  by_dataset,
  comparisons,
  data_title,
  targets_of,
)
from comen_jax.report.plots import arrays as reading
from comen_jax.report.plots import curves
from comen_jax.report.plots.arrays import Arrays
from comen_jax.report.records import Record, setting_of
from comen_jax.variants import title_of

_PAIR = ("deepall", "comen")


class Log(NamedTuple):
  """The metrics.jsonl of a run: its path, and its epochs' records."""

  path: pathlib.Path
  epochs: list[dict[str, Any]]


class Method(NamedTuple):
  """The runs of a row on one target.

  Attributes:
    title: name of the row, as in the tables.
    colour: index of `Theme.methods`: 0 for DeepAll, 1 for COMEN, and what is
      left for another row.
    num_domains: M, 0 for a method without latent domains.
    seed: lowest seed that has a whole analysis.npz, -1 if none has.
    analysis: path of that analysis.npz, or None.
    arrays: its arrays.
    logs: log of every seed that has one, in order of seeds.
  """

  title: str
  colour: int
  num_domains: int
  seed: int
  analysis: pathlib.Path | None
  arrays: Arrays
  logs: tuple[Log, ...]


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


def tasks(records: list[Record], tell: Tell = warn) -> tuple[Task, ...]:
  """Returns the tasks in the order of tables, of the runs that have a folder.

  Args:
    records: finished runs.
    tell: is told of each file that is damaged; others are drawn.
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
        found.append(Task(dataset, target, title, _methods(runs, tell)))
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


def _methods(records: list[Record], tell: Tell) -> tuple[Method, ...]:
  by_row: dict[str, list[Record]] = {}
  for record in records:
    by_row.setdefault(record.row, []).append(record)
  pair = _PAIR
  if "deepall" not in by_row:
    pair = ("deepall_bn", "comen")  # Also DeepAll, with BatchNorm.
  others = iter([row for row in by_row if row not in pair])
  places = [row if row in by_row else next(others, None) for row in pair]
  shown = [(row, colour) for colour, row in enumerate(places) if row]
  shown.sort(key=lambda one: one[0] not in pair)  # The others come last.
  return tuple(_method(r, c, by_row[r], tell) for r, c in shown)


def _method(row: str, colour: int, records: list[Record], tell: Tell) -> Method:
  num_domains = _one_size(records)
  runs = sorted(
    (r for r in records if setting_of(r).num_domains == num_domains),
    key=lambda r: r.measured["seed"],
  )
  seed, analysis, arrays = _first_analysis(runs, tell)
  logs = [r.folder / "metrics.jsonl" for r in runs]
  read = [Log(p, curves.read(p, tell)) for p in logs if p.exists()]
  return Method(
    title_of(row),
    colour,
    num_domains,
    seed,
    analysis,
    arrays,
    tuple(log for log in read if log.epochs),
  )


def _first_analysis(
  runs: list[Record], tell: Tell
) -> tuple[int, pathlib.Path | None, Arrays]:
  """Returns seed, path and arrays of the first analysis.npz that is whole."""
  for record in runs:
    path = record.folder / "analysis.npz"
    if path.exists() and (arrays := reading.read(path, tell)):
      _drop_other_count(record, arrays)
      return record.measured["seed"], path, arrays
  return -1, None, {}


def _drop_other_count(record: Record, arrays: Arrays) -> None:
  """Removes a count of latent domains that is not the one in the record.

  Older files counted the training images alone, by the chosen network.
  """
  sizes, counts = record.measured.get("domain_sizes"), arrays.get("contingency")
  if sizes and counts is not None and counts.sum(axis=1).tolist() != sizes:
    del arrays["contingency"]


def _one_size(records: list[Record]) -> int:
  """Returns the M that is nearest to the number of sources."""
  sources = len(records[0].measured["sources"])
  sizes = sorted({setting_of(r).num_domains for r in records})
  return min(sizes, key=lambda size: abs(size - sources))
