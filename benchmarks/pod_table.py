"""The tables of pods in docs/scale.md, in markdown, from a record."""

from typing import Any

from benchmarks import page, scaling
from benchmarks.scaling import V5E, Times, Traffic

Step = dict[str, Any]
_TITLES = {
  "per_chip": "Batch per chip fixed: 128 images a chip",
  "global": "Global batch fixed: 256 images",
}
_HEAD = (
  *("step", "chips", "images a chip", "Gflop", "GB accessed", "memory, GB"),
  *("collectives", "MB", "compute, ms", "reduce, ms", "apart", "overlapped"),
  *("10 µs each", "compiled in, s"),
)
_BEGIN = "<!-- make pod writes this -->"


def render(record: dict[str, Any]) -> str:
  """Renders one table for each way to fix the batch, and the kinds."""
  steps = list(record["steps"].values())
  parts = []
  for batch, title in _TITLES.items():
    chosen = sorted((s for s in steps if s["batch"] == batch), key=_order)
    rows = [_row(step, steps) for step in chosen]
    parts.append(f"{title}.\n\n{page.markdown(_HEAD, rows)}")
  parts.append(_roles(steps))
  return "\n\n".join(parts)


def put(tables: str, text: str) -> str:
  """Puts the tables into the text of a page, between its two marks."""
  return page.put(tables, text, _BEGIN)


def times(step: Step) -> Times:
  """Seconds of a step at the published rates of v5e."""
  return scaling.times(step["flops"], traffic(step), step["chips"], V5E)


def traffic(step: Step) -> Traffic:
  """What the chips exchange in a step."""
  kinds = step["collectives"].values()
  weights = step["roles"].get("weights", 0)
  return Traffic(
    weights=weights,
    others=sum(kind["bytes"] for kind in kinds) - weights,
    number=sum(kind["number"] for kind in kinds),
  )


def reduced_share(step: Step) -> float:
  """Bytes of all collectives by those that a step needs to reduce."""
  total = sum(kind["bytes"] for kind in step["collectives"].values())
  return total / sum(step["needed_bytes"].values())


def _row(step: Step, steps: list[Step]) -> list[str]:
  start = [_name(step), str(step["chips"]), _images(step)]
  if "error" in step:
    return [*start, "does not fit into memory", *[""] * 10]
  all_times, exchange = times(step), traffic(step)
  return [
    *start,
    _number(step["flops"] / 1e9),
    _number(step["bytes_accessed"] / 1e9),
    _number(step["memory_bytes"] / 1e9),
    str(exchange.number),
    _number((exchange.weights + exchange.others) / 1e6),
    _number(all_times.compute * 1e3),
    _number(all_times.reduce * 1e3),
    *_efficiencies(step, steps),
    f"{step['compile_seconds']:.0f}",
  ]


def _efficiencies(step: Step, steps: list[Step]) -> list[str]:
  """Shares of the speed of one chip; empty if that was not compiled."""
  same = ("network", "method", "stage", "batch")
  alone = [
    s
    for s in steps
    if s["chips"] == 1 and all(s[key] == step[key] for key in same)
  ]
  if not alone or "error" in alone[0]:
    return [""] * 3
  images = (alone[0]["images"], step["images"])
  one, many = times(alone[0]).compute, times(step)
  return [
    f"{scaling.efficiency(one, seconds, images, step['chips']):.3f}"
    for seconds in (many.apart, many.overlapped, many.started)
  ]


def _roles(steps: list[Step]) -> str:
  """What the collectives of the largest slice carry."""
  whole = [s for s in steps if s["batch"] == "per_chip" and "error" not in s]
  most = max((s["chips"] for s in whole), default=0)
  names = ("weights", "norms", "prototypes", "scalars", "other")
  head = (
    "step", *(f"{name}, kB" for name in names), "needed, kB",
    "all / needed", "kinds", "defects",
  )  # fmt: skip
  rows = [
    [
      _name(step),
      *(_number(step["roles"].get(name, 0) / 1e3) for name in names),
      _number(sum(step["needed_bytes"].values()) / 1e3),
      f"{reduced_share(step):.3f}",
      ", ".join(
        f"{kind['number']} {name}" for name, kind in step["collectives"].items()
      ),
      str(len(step["defects"])),
    ]
    for step in sorted(whole, key=_order)
    if step["chips"] == most
  ]
  return f"What {most} chips exchange.\n\n{page.markdown(head, rows)}"


def _order(step: Step) -> tuple[str, str, int]:
  return step["network"], _name(step), step["chips"]


def _name(step: Step) -> str:
  network = {"digits": "digits CNN", "resnet18": "ResNet-18"}[step["network"]]
  stage = "DeepAll" if step["method"] == "deepall" else step["stage"]
  return f"{network}, {stage}"


def _images(step: Step) -> str:
  return str(step["images"] // step["chips"])


def _number(value: float) -> str:
  """Three digits that count."""
  return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
