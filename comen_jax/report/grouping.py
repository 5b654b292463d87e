"""Runs that may be averaged: those that differ in target and seed alone.

Runs of another number of latent domains, of epochs, of another copy of the data
or from other weights are lines of their own, named by what tells them apart.
"""

from typing import NamedTuple

from comen_jax import variants
from comen_jax.data import mini_digits
from comen_jax.errors import UserError
from comen_jax.report import paper
from comen_jax.report.records import Record
from comen_jax.report.statistics import Figures

LABELS_NOTE = (
  "Rows that use domain labels are told the true domain of every training image"
  " and do not compete for the best of a column."
)
_LABELS_MARK = " (uses domain labels)"
_ORDER = {
  "mini_digits": mini_digits.DOMAINS,
  **{name: tuple(table.columns) for name, table in paper.TABLES.items()},
}


class Setting(NamedTuple):
  """What all runs of a group share.

  Attributes:
    row: name of the row.
    epochs: of a run.
    num_domains: M, 0 for rows that have no latent domains.
    manifest: hash of the data set's manifest.
    weights: hash of the pretrained weights, "" for a random start.
    domain_labels: whether training is told the true domains.
  """

  row: str
  epochs: int
  num_domains: int
  manifest: str
  weights: str
  domain_labels: bool


class Group(NamedTuple):
  """A line of a table.

  Attributes:
    setting: what its runs share.
    title: the row's, with what tells this group from others of the data set;
      marked where domain labels are used.
    runs: by target and seed.
  """

  setting: Setting
  title: str
  runs: dict[str, dict[int, Record]]

  def figures(self, key: str) -> Figures:
    """A measured value by target and seed, where it was measured."""
    return {
      target: {
        seed: record.measured[key]
        for seed, record in by_seed.items()
        if record.measured.get(key) is not None
      }
      for target, by_seed in self.runs.items()
    }

  def count(self, targets: tuple[str, ...]) -> str:
    """Number of runs; per target in brackets where they are not equal."""
    counts = [len(self.runs.get(target, ())) for target in targets]
    total = str(sum(counts))
    if len(set(counts)) == 1:
      return total
    return f"{total} ({', '.join(map(str, counts))})"


def data_title(dataset: str) -> str:
  """A data set's name for people."""
  if dataset in paper.TABLES:
    return paper.TABLES[dataset].title
  return dataset.replace("_", " ")


def by_dataset(records: list[Record]) -> dict[str, list[Record]]:
  """Data sets in the order of the paper's tables, then the others."""
  names = sorted({r.measured["dataset"] for r in records})
  known = [name for name in paper.TABLES if name in names]
  order = known + [name for name in names if name not in known]
  return {n: [r for r in records if r.measured["dataset"] == n] for n in order}


def targets_of(records: list[Record]) -> tuple[str, ...]:
  """The columns of a data set's tables.

  The paper's benchmarks have all of their domains, run or not, since an average
  of some would be of another benchmark; others have those that were run.
  """
  names = {r.measured["target"] for r in records}
  dataset = records[0].measured["dataset"]
  if dataset in paper.TABLES:
    names |= {s for r in records for s in r.measured["sources"]}
  known = _ORDER.get(dataset, ())
  return (*(n for n in known if n in names), *sorted(names - set(known)))


def group(records: list[Record]) -> list[Group]:
  """Groups of one data set's runs, in the order of `variants.VARIANTS`."""
  found: dict[Setting, dict[str, dict[int, Record]]] = {}
  for record in records:
    runs = found.setdefault(_setting(record), {})
    by_seed = runs.setdefault(record.measured["target"], {})
    seed = record.measured["seed"]
    if seed in by_seed:
      raise UserError(
        f"{by_seed[seed].run} and {record.run} have the same row, target, seed,"
        " epochs and data: what tells them apart is on no record; report them"
        " one by one"
      )
    by_seed[seed] = record
  known = list(variants.VARIANTS)
  order = lambda s: (
    known.index(s.row) if s.row in known else len(known), s
  )  # fmt: skip
  settings = sorted(found, key=order)
  return [
    Group(
      setting,
      _title(setting) + _variant(setting, settings),
      found[setting],
    )
    for setting in settings
  ]


def _title(setting: Setting) -> str:
  """A row's printed name; one that this version does not know keeps its own."""
  row = setting.row
  title = variants.VARIANTS[row].title if row in variants.VARIANTS else row
  if setting.domain_labels and _LABELS_MARK not in title:
    title += _LABELS_MARK
  return title


def _setting(record: Record) -> Setting:
  measured = record.measured
  row = variants.VARIANTS.get(record.row)
  latent = row.latent if row else measured.get("domain_sizes") is not None
  return Setting(
    record.row,
    measured["epochs"],
    measured["num_domains"] if latent else 0,
    measured["manifest"],
    measured.get("weights", ""),
    record.row == "comen_true_domains" or measured["domain_labels"],
  )


def _variant(setting: Setting, settings: list[Setting]) -> str:
  """Names what varies within the table, such as ", M = 4"."""
  several = lambda key: len({getattr(s, key) for s in settings}) > 1
  parts = []
  if setting.num_domains and len({s.num_domains for s in settings} - {0}) > 1:
    parts.append(f"M = {setting.num_domains}")
  if several("epochs"):
    parts.append(f"{setting.epochs} epochs")
  if several("manifest"):
    parts.append(f"data {setting.manifest[:8]}")
  if several("weights"):
    weights = setting.weights
    parts.append(f"weights {weights[:8]}" if weights else "random start")
  return "".join(f", {part}" for part in parts)
