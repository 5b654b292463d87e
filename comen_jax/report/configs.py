"""Compares the configs of runs that a table would treat as alike.

A record says which row, data and epochs a run has, but not, for example, its
learning rate. The config.json in the run's folder, if it is there, says more.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

from comen_jax.files import read_json
from comen_jax.variants import VARIANTS

# Tables tell runs apart by these.
_SHOWN = {"method", "norm", "dataset", "target", "seed", "num_domains"}
# These do not change a result, or the record has the hash of what they name.
_FREE = {
  "data_dir", "pretrained", "logging", "resolved", "eval_batch_size", "remat",
  "oracle",
}  # fmt: skip
_METHODS = {variant.settings["method"] for variant in VARIANTS.values()}


def differences(
  one: pathlib.Path | None, other: pathlib.Path | None
) -> list[str]:
  """Lists the settings in which the configs of two runs' folders differ.

  Settings that only one config has are left out, since a newer version of the
  code may have added them. The list is empty if a config is not there.
  """
  if one == other or not (one and other):
    return []
  places = one / "config.json", other / "config.json"
  if not all(place.exists() for place in places):
    return []
  first, second = (dict(_settings(read_json(p))) for p in places)
  return [
    f"{key} ({first[key]} and {second[key]})"
    for key in sorted(first.keys() & second.keys())
    if first[key] != second[key]
  ]


def difference_text(
  one: pathlib.Path | None, other: pathlib.Path | None
) -> str:
  """Names the differences as part of a message; "" if there is none."""
  found = differences(one, other)
  return f"; their configs differ in {', '.join(found)}" if found else ""


def _settings(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
  """Yields the settings that can change a result, by dotted key."""
  unused = _METHODS - {config.get("method")}
  for key, value in config.items():
    if key in _SHOWN | _FREE | unused:
      continue
    if isinstance(value, dict):
      yield from ((f"{key}.{name}", v) for name, v in value.items())
    else:
      yield key, value
