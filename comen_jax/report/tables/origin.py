"""Where the results of a table come from: data, code, devices, time."""

from collections.abc import Iterable

from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Comparison, data_title


def origin(comparison: Comparison) -> Table:
  """Lists every value that the runs' records have.

  A cell is empty if no record has the value.
  """
  records = comparison.records
  measured = [r.measured for r in records]
  known = [r.provenance for r in records]
  commits = _distinct(p.get("commit") for p in known)
  lines = {
    "Data set": data_title(comparison.dataset),
    "Manifest": _listed(m["manifest"] for m in measured),
    "Runs": str(len(records)),
    "Seeds": _listed(m["seed"] for m in measured),
    "Epochs": _listed(m["epochs"] for m in measured),
    "Pretrained weights": "; ".join(
      w or "none (random start)"
      for w in _distinct(m.get("weights") for m in measured)
    ),
    "Commit": ", ".join(commits),
    "Python": _listed(p.get("python") for p in known),
    "Packages": _packages(known),
    "Devices": _listed(_device(p) for p in known),
    "Processes": _listed(p.get("processes") for p in known),
    "Time": _time(known),
  }
  return Table(
    f"Origin of the results on {comparison.title}",
    ("", "Value"),
    tuple((Cell(name), Cell(text)) for name, text in lines.items()),
    tuple(_notes(commits, known)),
  )


def _notes(commits: list[str], known: list[dict]) -> Iterable[str]:
  if len(commits) > 1:
    yield f"The runs were made by {len(commits)} different commits of the code."
  if any(c.endswith("-dirty") for c in commits):
    yield 'For a commit marked "-dirty", the code had uncommitted changes.'
  resumed = sum(bool(p.get("resumed_at_unit")) for p in known)
  if resumed:
    yield (
      f"{resumed} of the runs were interrupted and resumed; their time counts"
      " from the last start only."
    )


def _distinct(values: Iterable) -> list:
  """Returns the values that are known, sorted, each once."""
  return sorted({v for v in values if v is not None})


def _listed(values: Iterable) -> str:
  return ", ".join(map(str, _distinct(values)))


def _packages(known: list[dict]) -> str:
  names = _distinct(name for p in known for name in p.get("packages", {}))
  return ", ".join(
    f"{name} "
    + " and ".join(_distinct(p.get("packages", {}).get(name) for p in known))
    for name in names
  )


def _device(provenance: dict) -> str | None:
  if "devices" not in provenance:
    return None
  kind, platform = provenance["device_kind"], provenance["platform"]
  where = "" if kind == platform else f" ({platform})"
  return f"{provenance['devices']} x {kind}{where}"


def _time(known: list[dict]) -> str:
  seconds = [p["seconds_of_this_start"] for p in known
             if "seconds_of_this_start" in p]  # fmt: skip
  if not seconds:
    return ""
  if len(seconds) == 1:
    return _clock(seconds[0])
  each = sum(seconds) / len(seconds)
  return (
    f"{_clock(each)} per run ({_clock(min(seconds))} to"
    f" {_clock(max(seconds))}), {_clock(sum(seconds))} in total"
  )


def _clock(seconds: float) -> str:
  if seconds < 120:
    return f"{seconds:.0f} s"
  if seconds < 2 * 3600:
    return f"{seconds / 60:.1f} min"
  return f"{seconds / 3600:.1f} h"
