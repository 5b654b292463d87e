"""The table of all methods in docs/methods.md, from registry and record."""

from typing import Any

from benchmarks.page import markdown
from comen_jax.methods.registry import METHODS, Entry
from comen_jax.nn.registry import BACKBONES
from comen_jax.variants import LABELS_MARK, VARIANTS, title_of

BEGIN = "<!-- benchmarks.methods writes this -->"
# Rows that are a method with an augmentation; their names are those of a sweep.
AUGMENTED = ("deepall_bn_amplitude", "deepall_bn_randconv")
_HEAD = (
  "method", "name", "domain labels", "norm", "other norms", "backbones",
  "cost of a step",
)  # fmt: skip


def render(record: dict[str, Any]) -> str:
  """Renders a row for every method, and for augmentations that replace one.

  Methods without domain labels come first, then augmentations, then methods
  with domain labels.

  Args:
    record: what `benchmarks.methods` wrote; {} if nothing was measured.
  """
  measured = record.get("methods", {})
  rows: dict[bool, list[list[str]]] = {False: [], True: []}
  for name, entry in METHODS.items():
    rows[entry.domain_labels].append(_row(name, entry, measured))
  added = [_augmented_row(name, measured) for name in AUGMENTED]
  return markdown(_HEAD, [*rows[False], *added, *rows[True]])


def _row(name: str, entry: Entry, measured: dict[str, Any]) -> list[str]:
  others = [norm for norm in entry.norms if norm != entry.norm]
  return [
    title_of(name).removesuffix(LABELS_MARK),
    f"`{name}`",
    "uses them" if entry.domain_labels else "no",
    "the backbone's" if entry.norm == "own" else entry.norm,
    ", ".join(others),
    _backbones(entry.backbones),
    _cost(measured.get(name)),
  ]


def _augmented_row(name: str, measured: dict[str, Any]) -> list[str]:
  settings = VARIANTS[name].settings
  method, augment = settings["method"], settings["augment"]
  row = _row(method, METHODS[method], {method: measured.get(name)})
  return [title_of(name), f"`{method}`, `augment={augment}`", *row[2:]]


def _backbones(names: tuple[str, ...]) -> str:
  """Names of the backbones, or of those that are not among them."""
  missing = [name for name in BACKBONES if names and name not in names]
  if len(missing) < len(names):
    return f"all but {', '.join(missing)}"
  return ", ".join(names) or "all"


def _cost(found: dict[str, Any] | None) -> str:
  """The time of a step over that of DeepAll, by stage."""
  if found is None:
    return "not measured"
  # A record has its keys in the order of the alphabet.
  stages = sorted(found["stages"].items(), key=lambda item: _place(item[0]))
  texts = {name: f"{stage['ratio']:.2f}" for name, stage in stages}
  if len(texts) == 1:
    return next(iter(texts.values()))
  return ", ".join(f"{name} {text}" for name, text in texts.items())


def _place(stage: str) -> int:
  """The place of a stage of COMEN in a run; 0 for that of other methods."""
  order = ("warmup", "discover", "encode")
  return order.index(stage) if stage in order else 0
