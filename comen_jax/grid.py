"""Lists the runs of a sweep: targets x variants x M x seeds, and its shards."""

from typing import NamedTuple

from ml_collections import ConfigDict

from comen_jax import settings, variants
from comen_jax.data.dataset import Dataset, leave_one_out
from comen_jax.errors import UserError
from comen_jax.methods import METHODS
from comen_jax.variants import VARIANTS, Variant

# What a sweep sets itself, and the flag to ask for it.
_TAKEN = {"target": "--targets", "seed": "--seeds", "norm": "--methods"}


class Run(NamedTuple):
  """One training run.

  Attributes:
    name: unique in a sweep and the name of its folder.
    row: its line in the tables.
    config: all that it depends on.
  """

  name: str
  row: str
  config: ConfigDict


def make(
  config: ConfigDict,
  dataset: Dataset,
  targets: str = "all",
  seeds: str = "0",
  methods: str = "deepall,deepall_bn,comen",
  num_domains: str = "",
) -> list[Run]:
  """All runs, seed by seed, so that a sweep cut short has whole tables.

  Args:
    config: what all runs have in common.
    dataset: names the domains.
    targets: "all", or names with commas between them.
    seeds: whole numbers.
    methods: names of variants or methods, or "ablation".
    num_domains: values of M for rows that have latent domains; "" is the
      config's.
  """
  for key, flag in _TAKEN.items():
    if config[key]:
      raise UserError(
        f"config.{key}={config[key]} is the sweep's to set: give {flag}"
      )
  same = left_out(methods, config)
  target_names = _targets(targets, dataset)
  domain_counts = _numbers("num_domains", num_domains) if num_domains else ()
  runs = {}
  for seed in _numbers("seeds", seeds):
    for name in (n for n in row_names(methods) if n not in same):
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
    raise UserError(f"shard={shard}: parts are counted from 0, {last}")
  return runs[i::n], i, n


def row_names(methods: str) -> tuple[str, ...]:
  return (
    variants.ABLATION if methods == "ablation" else _items("methods", methods)
  )


def left_out(methods: str, config: ConfigDict) -> dict[str, str]:
  """Rows that are another one on this backbone -> that other row.

  A ResNet's own normalisation is BatchNorm, so its `_bn` rows say nothing new.
  """
  seen: dict[tuple, str] = {}
  same = {}
  for name in row_names(methods):
    row = _variant(name)
    given = dict(row.settings)
    method = given.pop("method")
    given["norm"] = settings.norm(_with(config, row.settings))
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
  names = ", ".join([*VARIANTS, *(m for m in METHODS if m not in VARIANTS)])
  raise UserError(f"methods={name}: choose from {names}, or ablation")


def _run(config, dataset: str, name: str, target: str, count, seed: int) -> Run:
  given = {**_variant(name).settings, "target": target, "seed": seed}
  parts = [dataset, target, name]
  if count is not None:
    given["num_domains"] = count
    parts.append(f"m{count}")
  parts.append(f"seed{seed}")
  return Run("-".join(parts), name, _with(config, given))


def _with(config: ConfigDict, given: dict) -> ConfigDict:
  config = config.copy_and_resolve_references()
  with config.unlocked():
    config.update_from_flattened_dict(dict(given))
  return config


def _domain_counts(name, counts, config, num_sources: int) -> tuple:
  """M of a row: as asked; true domains are as many as there are."""
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
  if dataset.name == "folder" and dataset.default_target:
    return (dataset.default_target,)  # train/ and test/, not to be swapped.
  return dataset.domain_names


def _items(flag: str, text: str) -> tuple[str, ...]:
  items = [item.strip() for item in text.split(",")]
  if not all(items):
    raise UserError(f"{flag}={text!r}: give names with commas between them")
  return tuple(dict.fromkeys(items))


def _numbers(flag: str, text: str) -> tuple[int, ...]:
  items = _items(flag, text)
  if not all(item.isdigit() for item in items):
    raise UserError(f"{flag}={text}: give whole numbers, such as 0,1,2")
  return tuple(dict.fromkeys(map(int, items)))
