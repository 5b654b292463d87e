"""Lists the runs of a sweep: targets x variants x M x seeds, and its shards."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from comen_jax import config as config_lib
from comen_jax import ranges, variants
from comen_jax.data.dataset import Dataset, leave_one_out
from comen_jax.errors import UserError
from comen_jax.methods import options
from comen_jax.methods.registry import METHODS
from comen_jax.variants import VARIANTS, Variant

# Keys that a sweep sets itself, and the flag for each.
_TAKEN = {"target": "--targets", "seed": "--seeds", "norm": "--methods"}


class Run(NamedTuple):
  """One training run.

  Attributes:
    name: unique name in a sweep, and the name of the run's folder.
    row: name of its row in the tables.
    config: config of the run.
  """

  name: str
  row: str
  config: ConfigDict


def check(
  config: ConfigDict, seeds: str, methods: str, num_domains: str
) -> None:
  """Raises UserError at the first value that no run can have.

  It needs no data. Args: see `make`.
  """
  for key, flag in _TAKEN.items():
    if config[key]:
      raise UserError(
        f"config.{key}={config[key]}: a sweep sets this key; give {flag}"
      )
  _numbers("seeds", seeds, "seed")
  counts = _domain_numbers(num_domains) or (config.num_domains,)
  for name in row_names(methods, config):
    given = {**_variant(name).settings, "num_domains": counts[0]}
    config_lib.check(_with(config, given))


def check_given(
  given: Mapping[str, Any], methods: str, config: ConfigDict
) -> None:
  """Raises UserError at a flag that the rows would override or not read.

  Args:
    given: keys of the config that flags gave, with their values.
    methods: see `make`.
    config: config that all runs share.
  """
  if "method" in given:
    raise UserError(
      f"config.method={given['method']}: a sweep sets this key; give --methods"
    )
  rows = {name: _variant(name).settings for name in row_names(methods, config)}
  for name, settings in rows.items():
    for key in sorted(set(settings) & set(given) - set(_TAKEN)):
      if given[key] != settings[key]:
        raise UserError(
          f"config.{key}={given[key]}: the row {name} sets this key to"
          f" {settings[key]}; leave the flag out, or leave the row out of"
          " --methods"
        )
  options.check_read(given, (row["method"] for row in rows.values()))


def make(
  config: ConfigDict,
  dataset: Dataset,
  targets: str = "all",
  seeds: str = "0",
  methods: str = "deepall,deepall_bn,comen",
  num_domains: str = "",
) -> list[Run]:
  """Lists all runs, seed by seed, so that a stopped sweep has whole tables.

  Args:
    config: config that all runs share.
    dataset: data set, for the names of its domains.
    targets: "all", or names of targets separated by commas.
    seeds: whole numbers separated by commas.
    methods: names of variants, methods or groups: "ablation" (the paper's
      parts), "label_free" and "labelled" (all methods without and with domain
      labels), "label_free_bn" (those without, with BatchNorm).
    num_domains: values of M for rows that have latent domains; "" is the
      config's.
  """
  same = left_out(methods, config)
  target_names = _targets(targets, dataset)
  domain_counts = _domain_numbers(num_domains)
  runs = {}
  for seed in _numbers("seeds", seeds, "seed"):
    for name in (n for n in row_names(methods, config) if n not in same):
      for target in target_names:
        split = leave_one_out(dataset, target)
        own = _domain_counts(name, domain_counts, config, len(split.sources))
        for count in own:
          run = _run(config, dataset.name, name, target, count, seed)
          runs[run.name] = run
  return list(runs.values())


def part(runs: list[Run], shard: str) -> tuple[list[Run], int, int]:
  """ "i/n" -> (every n-th run from the i-th on, i, n)."""
  first, slash, count = shard.partition("/")
  if not (slash and first.isdigit() and count.isdigit()):
    raise UserError(f"shard={shard}: give i/n, such as 0/4")
  i, n = int(first), int(count)
  if not i < n:
    last = f"0/{n} to {n - 1}/{n}" if n else "0/1"
    raise UserError(f"shard={shard}: parts count from 0, {last}")
  return runs[i::n], i, n


def row_names(methods: str, config: ConfigDict) -> tuple[str, ...]:
  """The rows that `--methods` names; a group has those that fit the config."""
  misfits = unsupported(methods, config)
  names = []
  for item in _items("methods", methods):
    names += [n for n in _groups().get(item, ()) if n not in misfits]
    names += [item] if item not in _groups() else []
  return tuple(dict.fromkeys(names))


def unsupported(methods: str, config: ConfigDict) -> dict[str, str]:
  """Finds methods of the named groups that do not fit the config -> why."""
  found = {}
  for item in _items("methods", methods):
    for name in _groups().get(item, ()):
      try:
        config_lib.check_method(_with(config, _variant(name).settings))
      except UserError as e:
        found[name] = str(e)
  return found


def _groups() -> dict[str, tuple[str, ...]]:
  """Names that stand for several rows."""
  known = list(VARIANTS)
  place = lambda n: known.index(n) if n in known else len(known)
  labelled = sorted((n for n in METHODS if METHODS[n].domain_labels), key=place)
  free = sorted((n for n in METHODS if n not in labelled), key=place)
  return {
    "ablation": variants.ABLATION,
    "label_free": tuple(free),
    "label_free_bn": tuple(
      f"{n}_bn" if f"{n}_bn" in known else n for n in free
    ),
    "labelled": tuple(labelled),
  }


def left_out(methods: str, config: ConfigDict) -> dict[str, str]:
  """Finds rows that equal another one on this backbone -> that other row.

  The own normalisation of a ResNet is BatchNorm, so its `_bn` rows are equal.
  """
  seen: dict[tuple, str] = {}
  same = {}
  for name in row_names(methods, config):
    row = _variant(name)
    given = dict(row.settings)
    method = given.pop("method")
    given["norm"] = config_lib.norm(_with(config, row.settings))
    kind = "deepall" if method == "deepall_bn" else method
    first = seen.setdefault((kind, *sorted(given.items())), name)
    if first != name:
      same[name] = first
  return same


def _variant(name: str) -> Variant:
  """Returns a variant by name; any method is a variant too."""
  if name in VARIANTS:
    return VARIANTS[name]
  if name in METHODS:
    return Variant(name, {"method": name, "norm": ""})
  groups = _groups()
  near = difflib.get_close_matches(name, [*groups, *VARIANTS, *METHODS], 3)
  hint = f" did you mean {', '.join(dict.fromkeys(near))}?" if near else ""
  raise UserError(
    f"methods={name}: there is no such row;{hint} give rows or"
    f" {', '.join(groups)}; --help lists all rows"
  )


def _run(config, dataset: str, name: str, target: str, count, seed: int) -> Run:
  given = {**_variant(name).settings, "target": target, "seed": seed}
  number = []
  if count is not None:
    given["num_domains"] = count
    number = [f"m{count}"]
  config = _with(config, given)
  # Options that are not the defaults are part of the row and of the folder.
  row = variants.name_of(config.to_dict())
  parts = [dataset, target, _file_name(row), *number, f"seed{seed}"]
  return Run("-".join(parts), row, config)


def _file_name(row: str) -> str:
  """A row such as "vrex (weight=10.0)" becomes "vrex_weight_10.0"."""
  return re.sub(r"[^A-Za-z0-9_.]+", "_", row).strip("_")


def _with(config: ConfigDict, given: dict) -> ConfigDict:
  config = config.copy_and_resolve_references()
  with config.unlocked():
    config.update_from_flattened_dict(dict(given))
  return config


def _domain_counts(name, counts, config, num_sources: int) -> tuple:
  """Values of M of a row; true domains fix M to the number of sources."""
  row = _variant(name)
  if not row.latent:
    return (None,)
  if row.settings.get("comen.true_domains"):
    return (num_sources,)
  return counts or (config.num_domains,)


def _targets(text: str, dataset: Dataset) -> tuple[str, ...]:
  if text != "all":
    return tuple(
      leave_one_out(dataset, name).target for name in _items("targets", text)
    )
  if dataset.own and dataset.default_target:
    return (dataset.default_target,)  # train/ and test/ cannot be swapped.
  return dataset.domain_names


def _items(flag: str, text: str) -> tuple[str, ...]:
  items = [item.strip() for item in text.split(",")]
  if not all(items):
    raise UserError(f"{flag}={text!r}: give names separated by commas")
  return tuple(dict.fromkeys(items))


def _domain_numbers(text: str) -> tuple[int, ...]:
  return _numbers("num_domains", text, "num_domains") if text else ()


def _numbers(flag: str, text: str, key: str) -> tuple[int, ...]:
  """Reads the values of a config's key from a flag."""
  items = _items(flag, text)
  if not all(item.isdecimal() for item in items):
    raise UserError(f"{flag}={text}: give whole numbers, such as 0,1,2")
  numbers = tuple(dict.fromkeys(map(int, items)))
  for number in numbers:
    ranges.check_value(key, number)
  return numbers
