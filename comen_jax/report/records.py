"""Reads the records of finished runs, each run once."""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from comen_jax.errors import UserError
from comen_jax.report import configs, folders
from comen_jax.report.damage import Tell, warn
from comen_jax.variants import VARIANTS

# Without these a run has no place in any table.
_NEEDED = {
  "dataset": str,
  "manifest": str,
  "target": str,
  "sources": list,
  "seed": int,
  "epochs": int,
  "num_domains": int,
  "target_images": int,
  "val_accuracy": float | int,
  "target_accuracy": float | int,
  "target_accuracy_last": float | int,
}


class Record(NamedTuple):
  """A finished run.

  Attributes:
    run: name of the run.
    row: name of its row in the tables, such as one of `variants.VARIANTS`.
    measured: measured values, as in result.json.
    provenance: command, code and machine, as in result.json.
    folder: folder of the run, None if only its record is there.
    config: config.json of that folder, None if it cannot be read.
  """

  run: str
  row: str
  measured: dict[str, Any]
  provenance: dict[str, Any]
  folder: pathlib.Path | None
  config: dict[str, Any] | None = None


class Setting(NamedTuple):
  """What runs must have in common to be averaged.

  Attributes:
    row: name of the row.
    epochs: number of epochs of a run.
    num_domains: M, 0 for rows that have no latent domains.
    manifest: hash of the data set's manifest.
    weights: hash of the pretrained weights, "" for a random start.
    domain_labels: whether training uses the true domains.
  """

  row: str
  epochs: int
  num_domains: int
  manifest: str
  weights: str
  domain_labels: bool


class _Identity(NamedTuple):
  """Two records of equal identity are records of the same run."""

  dataset: str
  target: str
  setting: Setting
  seed: int


def read(places: Sequence[pathlib.Path], tell: Tell = warn) -> list[Record]:
  """Reads all finished runs in the given folders, ordered by data set, target.

  Args:
    places: folders of runs.
    tell: is told of each result.json and config.json that cannot be read.

  Raises:
    UserError: a folder has no finished run, none can be read, a line of
      results*.jsonl is not complete, or two records of the same run have
      different results.
  """
  known: dict[_Identity, tuple[Record, str]] = {}
  damaged: list[str] = []
  for place in places:
    names: dict[tuple, tuple[Record, str]] = {}
    for found in folders.find(place, tell):
      try:
        new = _record(found, tell), found.where
      except UserError as e:
        if found.is_line:
          raise
        damaged.append(str(e))
        continue
      identity = _identity(new[0])
      # One run must not count as two rows.
      name = new[0].run, identity._replace(setting=identity.setting[1:])
      _check_same(names.setdefault(name, new), new)
      old = known.setdefault(identity, new)
      _check_same(old, new)
      if old[0].folder is None and new[0].folder:
        known[identity] = new
  if not known:
    raise UserError(damaged[0])
  for line in damaged:
    tell(f"{line}; the report goes on without this run")
  return [record for _, (record, _) in sorted(known.items())]


def setting_of(record: Record) -> Setting:
  """Returns what a run must have in common with others to be averaged."""
  measured = record.measured
  variant = VARIANTS.get(record.row)
  latent = (
    variant.latent if variant else measured.get("domain_sizes") is not None
  )
  return Setting(
    record.row,
    measured["epochs"],
    measured["num_domains"] if latent else 0,
    measured["manifest"],
    measured.get("weights", ""),
    record.row == "comen_true_domains" or measured["domain_labels"],
  )


def _identity(record: Record) -> _Identity:
  measured = record.measured
  return _Identity(
    measured["dataset"],
    measured["target"],
    setting_of(record),
    measured["seed"],
  )


def _record(found: folders.Found, tell: Tell) -> Record:
  if found.problem:
    raise UserError(found.problem)
  value = found.value
  kinds = {"run": str, "row": str, "measured": dict, "provenance": dict}
  _check_keys(value, kinds, found.where, "")
  _check_keys(value["measured"], _NEEDED, found.where, "measured.")
  # Records from before this key existed are of runs without domain labels.
  measured = {"domain_labels": False, **value["measured"]}
  return Record(
    value["run"],
    value["row"],
    measured,
    value["provenance"],
    found.folder,
    configs.read(found.folder, tell) if found.folder else None,
  )


def _check_keys(value: dict, kinds: dict, where: str, prefix: str) -> None:
  for key, kind in kinds.items():
    if not isinstance(value.get(key), kind):
      raise UserError(
        f"{where} has no {prefix}{key}, so it is not the record of a run:"
        " remove it"
      )


def _check_same(one: tuple[Record, str], other: tuple[Record, str]) -> None:
  """Raises UserError if two records of a run differ in what was measured."""
  (a, where_a), (b, where_b) = one, other
  first = {"row": a.row, **a.measured}
  second = {"row": b.row, **b.measured}
  # M is part of the identity, unless the row does not use it.
  for key in sorted((first.keys() | second.keys()) - {"num_domains"}):
    if first.get(key) != second.get(key):
      raise UserError(
        f"{a.run} is in {where_a} and in {where_b} with different {key}"
        f" ({first.get(key)} and {second.get(key)})"
        f"{configs.difference_text(a.config, b.config)}:"
        " report the folders one by one, or remove the record that is out of"
        " date"
      )
