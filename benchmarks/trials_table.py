"""The table of trials: accuracy, paired differences, and how the losses act."""

import json
import pathlib
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from comen_jax.report import statistics as seeds_lib

BASE = "deepall_bn"  # Differences are to this trial.
# Further comparisons: each trial differs from the other in one thing.
PAIRS = (
  ("weak_before", "off_before"),
  ("weak_after", "off_after"),
  ("medium_before", "off_before"),
  ("medium_after", "off_after"),
  ("strong_before", "off_before"),
  ("strong_after", "off_after"),
  ("raw_before", "off_before"),
  ("raw_after", "off_after"),
  ("unit_before", "off_before"),
  ("off_before", "off_after"),
  ("weak_before", "weak_after"),
  ("medium_before", "medium_after"),
  ("true_domains", "medium_before"),
  ("kmeans", "medium_before"),
  ("pixels", "medium_before"),
  ("threshold_0", "medium_before"),
  ("live", "medium_before"),
  ("noise_1", "medium_before"),
  ("shared_affine", "medium_before"),
  ("straight_through", "medium_before"),
)
# Columns from the last epoch of the training log. Medians over runs: a share is
# a ratio on one batch, and large where the gradient of L_cls happens to vanish.
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
  lines = _markdown(rows)
  pairs = [pair for pair in PAIRS if all(name in records for name in pair)]
  if pairs:
    lines += ["", *_markdown(_compare(pairs, records))]
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


def _markdown(rows: Iterable[Iterable[str]]) -> list[str]:
  return [" | ".join(["", *row, ""]).strip() for row in rows]


def _compare(
  pairs: Iterable[tuple[str, str]], records: Mapping[str, list[dict[str, Any]]]
) -> list[list[str]]:
  rows = [["trial", "minus", "difference", "95 % interval"], ["---"] * 4]
  for name, other in pairs:
    one, two = _values(records[name]), _values(records[other])
    rows.append([name, other, *_difference(one, two)])
  return rows


def _difference(values: seeds_lib.Values, base: seeds_lib.Values) -> list[str]:
  """The mean difference and its interval.

  Every pair of a target and a seed counts as one difference.
  """
  found = seeds_lib.summarise(
    value
    for by_seed in seeds_lib.paired(values, base, values).values()
    for value in by_seed.values()
  )
  half = seeds_lib.interval(found)
  return [
    "" if found is None else f"{found.mean:+.1f}",
    "" if half is None else f"± {half:.1f}",
  ]


def _row(
  name: str,
  records: list[dict[str, Any]],
  base: seeds_lib.Values,
  folder: pathlib.Path,
) -> list[str]:
  values = _values(records)
  measured = [record["measured"] for record in records]
  logs = [_last_epoch(folder / "runs" / r["run"]) for r in records]
  return [
    name,
    str(len(records)),
    seeds_lib.show(seeds_lib.average(values, values)),
    *_difference(values, base),
    _mean((100 * m["val_accuracy"] for m in measured), 1),
    _mean((m.get("nmi_domain") for m in measured), 2),
    *(_median((log.get(key) for log in logs), 3) for key in _LOGGED),
  ]


def _last_epoch(run: pathlib.Path) -> dict[str, Any]:
  log = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
  epochs = [json.loads(line) for line in log if '"epoch"' in line]
  return epochs[-1] if epochs else {}


def _mean(values: Iterable[float | None], digits: int) -> str:
  known = [value for value in values if value is not None]
  return f"{statistics.fmean(known):.{digits}f}" if known else ""


def _median(values: Iterable[float | None], digits: int) -> str:
  known = [value for value in values if value is not None]
  return f"{statistics.median(known):.{digits}f}" if known else ""
