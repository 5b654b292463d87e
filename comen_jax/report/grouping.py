"""Sorts runs into tables, and the runs of a table into its rows.

A table compares runs on the same copy of a data set, of equally many epochs and
from the same weights. Runs of a row that differ only in target and seed are
averaged; another number of latent domains is another row.
"""

from typing import NamedTuple

from comen_jax.errors import UserError
from comen_jax.report import benchmarks, configs, paper
from comen_jax.report.records import Record, Setting, setting_of
from comen_jax.report.statistics import Values
from comen_jax.variants import LABELS_MARK, VARIANTS, title_of

LABELS_NOTE = (
  "Rows that use domain labels know the true domain of every training image."
  " They do not count for the best value of a column."
)


class Group(NamedTuple):
  """The runs of one row of a table.

  Attributes:
    setting: what the runs have in common.
    title: name of the row, with M if the table has several, and with a mark if
      it uses domain labels.
    runs: records by target and seed.
  """

  setting: Setting
  title: str
  runs: dict[str, dict[int, Record]]

  def values(self, key: str) -> Values:
    """Returns a measured value by target and seed, where it was measured."""
    return {
      target: {
        seed: record.measured[key]
        for seed, record in by_seed.items()
        if record.measured.get(key) is not None
      }
      for target, by_seed in self.runs.items()
    }

  def count(self, targets: tuple[str, ...]) -> str:
    """Returns the number of runs; if targets differ, also for each target."""
    counts = [len(self.runs.get(target, ())) for target in targets]
    total = str(sum(counts))
    if len(set(counts)) == 1:
      return total
    return f"{total} ({', '.join(map(str, counts))})"


class Comparison(NamedTuple):
  """Runs that can be compared in one table.

  Attributes:
    dataset: name of the data set.
    title: data set and epochs, and what else tells this comparison from others
      on the same data set.
    targets: columns of its tables.
    groups: rows of its tables.
  """

  dataset: str
  title: str
  targets: tuple[str, ...]
  groups: list[Group]

  @property
  def ours(self) -> Group | None:
    """COMEN's row, None without one; of several M, nearest to the sources'."""
    rows = [g for g in self.groups if g.setting.row == "comen"]
    sources = len(self.records[0].measured["sources"])
    distance = lambda g: abs(g.setting.num_domains - sources)
    return min(rows, key=distance, default=None)

  @property
  def records(self) -> list[Record]:
    """All runs, in the order of rows, targets and seeds."""
    return [
      record
      for group in self.groups
      for by_seed in group.runs.values()
      for record in by_seed.values()
    ]


def comparisons(records: list[Record]) -> list[Comparison]:
  """Sorts runs by data set, epochs, manifest and weights."""
  return [
    Comparison(
      dataset,
      ", ".join([data_title(dataset), *names]),
      targets_of(own),
      group(own),
    )
    for dataset, of_dataset in by_dataset(records).items()
    for names, own in _kinds(of_dataset)
  ]


def data_title(dataset: str) -> str:
  """Returns a data set's name as a reader knows it."""
  if dataset in paper.TABLES:
    return paper.TABLES[dataset].title
  return dataset.replace("_", " ")


def by_dataset(records: list[Record]) -> dict[str, list[Record]]:
  """Sorts runs by data set: first the paper's, in its order, then others."""
  names = sorted({r.measured["dataset"] for r in records})
  known = [name for name in paper.TABLES if name in names]
  order = known + [name for name in names if name not in known]
  return {n: [r for r in records if r.measured["dataset"] == n] for n in order}


def targets_of(records: list[Record]) -> tuple[str, ...]:
  """Returns the columns of a data set's tables.

  The paper's benchmarks have all of their domains as columns, with or without
  runs: an average over some of them would be another benchmark. Other data sets
  have the targets that were run.
  """
  names = {r.measured["target"] for r in records}
  dataset = records[0].measured["dataset"]
  known = benchmarks.domains(dataset)
  if dataset in paper.TABLES:
    known = tuple(paper.TABLES[dataset].columns)
    names |= {s for r in records for s in r.measured["sources"]}
  return (*(n for n in known if n in names), *sorted(names - set(known)))


def group(records: list[Record]) -> list[Group]:
  """Sorts the runs of one comparison into rows, in the order of VARIANTS."""
  found: dict[Setting, dict[str, dict[int, Record]]] = {}
  first: dict[Setting, Record] = {}
  for record in records:
    setting = setting_of(record)
    _check_alike(first.setdefault(setting, record), record)
    runs = found.setdefault(setting, {})
    by_seed = runs.setdefault(record.measured["target"], {})
    seed = record.measured["seed"]
    if seed in by_seed:
      raise UserError(
        f"{by_seed[seed].run} and {record.run} have the same row, target, seed,"
        " epochs and data, so a table cannot tell them apart: report them one"
        " by one"
      )
    by_seed[seed] = record
  known = list(VARIANTS)

  def order(setting: Setting) -> tuple[int, Setting]:
    name = setting.row.partition(" ")[0]  # Without options that differ.
    return known.index(name) if name in known else len(known), setting

  settings = sorted(found, key=order)
  several = len({s.num_domains for s in settings} - {0}) > 1
  return [Group(s, _title(s, several), found[s]) for s in settings]


def _check_alike(one: Record, other: Record) -> None:
  """Raises UserError if two runs of a row have different configs."""
  if text := configs.difference_text(one.config, other.config):
    raise UserError(
      f"{one.folder} and {other.folder} would be averaged in one row{text}:"
      " report them one by one"
    )


def _title(setting: Setting, several_m: bool) -> str:
  """Returns a row's printed name; an unknown row keeps its own name."""
  title = title_of(setting.row)
  if setting.domain_labels and LABELS_MARK not in title:
    title += LABELS_MARK
  if several_m and setting.num_domains:
    title += f", M = {setting.num_domains}"
  return title


def _kinds(records: list[Record]) -> list[tuple[list[str], list[Record]]]:
  """Sorts runs by epochs, manifest and weights, each kind with its names."""
  kinds: dict[tuple[int, str, str], list[Record]] = {}
  for record in records:
    setting = setting_of(record)
    kind = setting.epochs, setting.manifest, setting.weights
    kinds.setdefault(kind, []).append(record)
  _, manifests, weights = map(set, zip(*kinds))
  found = []
  for (epochs, manifest, start), own in sorted(kinds.items()):
    names = [f"{epochs} epoch{'s' * (epochs != 1)}"]
    if len(manifests) > 1:
      names.append(f"data {manifest[:8]}")
    if len(weights) > 1:
      names.append(f"weights {start[:8]}" if start else "random start")
    found.append((names, own))
  return found
