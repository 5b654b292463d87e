"""Compares the configs of runs that a table would treat as alike.

A record says which row, data and epochs a run has, but not, for example, its
learning rate. The config.json in the run's folder, if it is there, says more.
"""

import pathlib
from collections.abc import Iterator
from typing import Any

from comen_jax.errors import UserError
from comen_jax.files import read_json
from comen_jax.methods.options import OPTIONS, used_blocks
from comen_jax.report.damage import Tell
from comen_jax.variants import VARIANTS

Config = dict[str, Any]

# Tables tell runs apart by these.
_SHOWN = {"method", "norm", "dataset", "target", "seed", "num_domains"}
# These do not change a result, or the record has the hash of what they name.
_FREE = {
  "data_dir", "pretrained", "logging", "resolved", "eval_batch_size", "remat",
  "oracle",
}  # fmt: skip
# Each may have a block of its own.
_METHODS = {variant.settings["method"] for variant in VARIANTS.values()}
_METHODS |= OPTIONS.keys()


def read(folder: pathlib.Path, tell: Tell) -> Config | None:
  """Reads the config.json of a run; None if it is absent or damaged."""
  place = folder / "config.json"
  if not place.exists():
    return None
  try:
    return read_json(place)
  except (UserError, OSError) as e:
    reason = e.strerror if isinstance(e, OSError) else "it is damaged"
    tell(
      f"{place} cannot be read ({reason}): the report goes on without it, so"
      " nothing checks that the run has the settings of its row"
    )
    return None


def differences(one: Config | None, other: Config | None) -> list[str]:
  """Lists the settings in which the configs of two runs differ.

  Settings that only one config has are left out, since a newer version of the
  code may have added them. The list is empty if a config is not there.
  """
  if one is None or other is None:
    return []
  first, second = dict(_settings(one)), dict(_settings(other))
  return [
    f"{key} ({first[key]} and {second[key]})"
    for key in sorted(first.keys() & second.keys())
    if first[key] != second[key]
  ]


def difference_text(one: Config | None, other: Config | None) -> str:
  """Names the differences as part of a message; "" if there is none."""
  found = differences(one, other)
  return f"; their configs differ in {', '.join(found)}" if found else ""


def _settings(config: Config) -> Iterator[tuple[str, Any]]:
  """Yields the settings that can change a result, by dotted key."""
  unused = _METHODS - set(used_blocks(config.get("method", "")))
  for key, value in config.items():
    if key in _SHOWN | _FREE | unused:
      continue
    if isinstance(value, dict):
      yield from ((f"{key}.{name}", v) for name, v in value.items())
    else:
      yield key, value
