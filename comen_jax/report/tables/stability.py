"""Whether latent domains stay and prototype losses act, by the training logs.

A run has its place here if its metrics.jsonl tells of the clustering and of the
last stage. Logs that cannot be read are left out; the training curves, which
need the same files, say so.
"""

import math
import pathlib
import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

from comen_jax.errors import UserError
from comen_jax.files import read_jsonl
from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Comparison
from comen_jax.report.records import Record


class Stability(NamedTuple):
  """What the log of a run says; NaN where it says nothing.

  Attributes:
    clustering: share of source images on which F_d agrees with the clustering
      when encode starts.
    end: share of training images on which F_d agrees with the frozen labels, in
      the last epoch.
    nmi: NMI with the true domains when encode starts, for evaluation.
    nmi_moved: how far it has moved since the clustering.
    smallest: share of the source images in the smallest domain.
    protogr: gradient of lambda ProtoGR in the features, relative to that of
      L_cls; median over the epochs of encode.
    protoccl: the same of gamma ProtoCCL.
    edges: share of pairs of prototypes that are edges in the graph of Eq. 8, in
      the last epoch.
  """

  clustering: float
  end: float
  nmi: float
  nmi_moved: float
  smallest: float
  protogr: float
  protoccl: float
  edges: float


# Title of the column and number of decimals; shares in per cent have one.
_COLUMNS = {
  "clustering": ("Agrees with the clustering (%)", 1),
  "end": ("Agrees at the end (%)", 1),
  "nmi": ("NMI with domain", 3),
  "nmi_moved": ("NMI moved by", 3),
  "smallest": ("Smallest domain (%)", 1),
  "protogr": ("Gradient of ProtoGR", 3),
  "protoccl": ("Gradient of ProtoCCL", 3),
  "edges": ("Edges (%)", 1),
}


def table(comparison: Comparison) -> Table | None:
  """Shows ranges over seeds by target; None if no log tells of a clustering."""
  _, title, targets, groups = comparison
  lines = []
  for g in groups:
    found = {t: _read(g.runs.get(t, {}).values()) for t in targets}
    every = [one for runs in found.values() for one in runs]
    if not every:
      continue
    lines.append((Cell(g.title, bold=True),))
    lines += [_line(t, runs) for t, runs in found.items() if runs]
    lines.append(_line("All", every))
  if not lines:
    return None
  return Table(
    f"Do latent domains stay, and do prototype losses act? Training logs on"
    f" {title}",
    ("Held-out target", "Runs", *(name for name, _ in _COLUMNS.values())),
    tuple(lines),
    (
      "Smallest and largest value of the runs. F_d is compared with the labels"
      " of the clustering when the last stage starts, on all source images, and"
      " with the labels that were fixed then, on training images of the last"
      " epoch. NMI is taken when the last stage starts; it has moved since the"
      " clustering. True domains are used to measure it, not to train.",
      "Gradients are those of the weighted losses in the features, relative to"
      " that of the classification loss: the median epoch of the last stage."
      " Edges are pairs of prototypes that the graph of Eq. 8 joins, in the"
      " last epoch.",
    ),
  )


def read(path: pathlib.Path) -> Stability | None:
  """Reads a metrics.jsonl; None if it is damaged or tells of no clustering."""
  try:
    log = read_jsonl(path)
    found = _prepared(log, "discover")
    fixed = _prepared(log, "encode")
  except (UserError, OSError):
    return None
  if "clustering_agreement" not in fixed:
    return None
  epochs = [
    r for r in log if (r.get("stage"), r.get("kind")) == ("encode", "epoch")
  ]
  last = epochs[-1] if epochs else {}
  sizes = fixed.get("domain_sizes") or [math.nan]
  nmi = _number(fixed, "nmi_domain")
  return Stability(
    clustering=_number(fixed, "clustering_agreement"),
    end=_number(last, "domain_agreement"),
    nmi=nmi,
    nmi_moved=nmi - _number(found, "nmi_domain"),
    smallest=min(sizes) / sum(sizes),
    protogr=_median(epochs, "share_protogr"),
    protoccl=_median(epochs, "share_protoccl"),
    edges=_number(last, "edge_share"),
  )


def _read(records: Iterable[Record]) -> list[Stability]:
  paths = (r.folder / "metrics.jsonl" for r in records if r.folder)
  found = (read(path) for path in paths if path.exists())
  return [one for one in found if one]


def _prepared(log: list[dict[str, Any]], stage: str) -> dict[str, Any]:
  """What the stage prepared; {} if the log has no such line."""
  wanted = (stage, "prepare")
  lines = (r for r in log if (r.get("stage"), r.get("kind")) == wanted)
  return next(lines, {})


def _number(record: dict[str, Any], key: str) -> float:
  value = record.get(key)
  return value if isinstance(value, float | int) else math.nan


def _median(epochs: list[dict[str, Any]], key: str) -> float:
  values = [r[key] for r in epochs if isinstance(r.get(key), float | int)]
  return statistics.median(values) if values else math.nan


def _line(name: str, runs: list[Stability]) -> tuple[Cell, ...]:
  texts = [str(len(runs))]
  for key, (title, digits) in _COLUMNS.items():
    scale = 100 if "%" in title else 1
    texts.append(_range([scale * getattr(one, key) for one in runs], digits))
  return (Cell(name), *(Cell(text, numeric=True) for text in texts))


def _range(values: list[float], digits: int) -> str:
  """Prints "0.02 to 0.32", one value if both are printed alike, "" for none."""
  known = [v for v in values if not math.isnan(v)]
  if not known:
    return ""
  ends = dict.fromkeys(f"{end:.{digits}f}" for end in (min(known), max(known)))
  return " to ".join(ends)
