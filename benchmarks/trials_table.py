"""The table of trials: accuracy, paired differences, and how the losses act."""

import json
import pathlib
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from comen_jax.report import statistics as seeds_lib

BASE = "deepall_bn"  # Differences are to this trial.
# Columns from the last epoch of the training log, as averages over runs.
_LOGGED = (
  "share_protogr",
  "share_protoccl",
  "edge_share",
  "cosine_within",
  "cosine_between",
  "domain_agreement",
)
_HEAD = (
  *("trial", "runs", "target", "minus BatchNorm", "95 % interval"),
  *("source validation", "NMI"),
  *_LOGGED,
)


def make(folder: pathlib.Path, settings: Mapping[str, Iterable[str]]) -> str:
  """Makes the table in markdown from the records of the trials in `folder`."""
  records = {name: read(folder / name) for name in settings}
  records = {name: found for name, found in records.items() if found}
  base = _values(records.get(BASE, []))
  rows = [_HEAD, ["---"] * len(_HEAD)]
  for name, found in records.items():
    rows.append(_row(name, found, base, folder / name))
  lines = [" | ".join(["", *row, ""]).strip() for row in rows]
  for name in records:
    lines.append(f"\n`{name}`: {', '.join(settings[name]) or 'as it is'}")
  return "\n".join(lines) + "\n"


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
  """Reads the records of a trial; none if it was not run."""
  lines = []
  for path in sorted(folder.glob("results.*.jsonl")):
    lines += path.read_text(encoding="utf-8").splitlines()
  return [json.loads(line) for line in lines]


def _values(records: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
  """Target accuracy in per cent by target and seed."""
  values: dict[str, dict[int, float]] = {}
  for measured in (record["measured"] for record in records):
    by_seed = values.setdefault(measured["target"], {})
    by_seed[measured["seed"]] = 100 * measured["target_accuracy"]
  return values


def _row(
  name: str,
  records: list[dict[str, Any]],
  base: seeds_lib.Values,
  folder: pathlib.Path,
) -> list[str]:
  values = _values(records)
  # Every pair of a target and a seed counts as one difference.
  differences = seeds_lib.summarise(
    value
    for by_seed in seeds_lib.paired(values, base, values).values()
    for value in by_seed.values()
  )
  half = seeds_lib.interval(differences)
  measured = [record["measured"] for record in records]
  logs = [_last_epoch(folder / "runs" / r["run"]) for r in records]
  return [
    name,
    str(len(records)),
    seeds_lib.show(seeds_lib.average(values, values)),
    "" if differences is None else f"{differences.mean:+.1f}",
    "" if half is None else f"± {half:.1f}",
    _mean((100 * m["val_accuracy"] for m in measured), 1),
    _mean((m.get("nmi_domain") for m in measured), 2),
    *(_mean((log.get(key) for log in logs), 3) for key in _LOGGED),
  ]


def _last_epoch(run: pathlib.Path) -> dict[str, Any]:
  log = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
  epochs = [json.loads(line) for line in log if '"epoch"' in line]
  return epochs[-1] if epochs else {}


def _mean(values: Iterable[float | None], digits: int) -> str:
  known = [value for value in values if value is not None]
  return f"{statistics.fmean(known):.{digits}f}" if known else ""
