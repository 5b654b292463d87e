"""Means and deviations over seeds.

The deviation is that of a sample (ddof 1): seeds stand for all those that were
not run. The average over targets is taken within each seed, over all targets,
and then summarised over seeds, so that its deviation says how far one whole
leave-one-domain-out round differs from another. Averaging the targets' own
means gives the same mean where all seeds are there, but no deviation.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# A figure per target and seed.
Figures = Mapping[str, Mapping[int, float]]


class Summary(NamedTuple):
  """Of at least one run; `std` is None for just one, which has none."""

  mean: float
  std: float | None
  runs: int


def summarise(values: Iterable[float]) -> Summary | None:
  """Mean and deviation; None where there is no value."""
  values = list(values)
  if not values:
    return None
  mean = math.fsum(values) / len(values)
  if len(values) == 1:
    return Summary(mean, None, 1)
  squares = math.fsum((v - mean) ** 2 for v in values)
  return Summary(mean, math.sqrt(squares / (len(values) - 1)), len(values))


def average(figures: Figures, targets: Iterable[str]) -> Summary | None:
  """Over `targets`, of the seeds that have every one of them.

  None where no seed has: an average of some targets would be of another
  benchmark.
  """
  columns = [figures.get(target, {}) for target in targets]
  if not columns:
    return None
  seeds = set.intersection(*map(set, columns))
  return summarise(
    math.fsum(column[seed] for column in columns) / len(columns)
    for seed in sorted(seeds)
  )


def show(summary: Summary | None, digits: int = 1, scale: float = 1.0) -> str:
  """Such as "62.5 ± 0.4", "62.5" of a single run, "" of none."""
  if summary is None:
    return ""
  mean = f"{scale * summary.mean:.{digits}f}"
  if summary.std is None:
    return mean
  return f"{mean} ± {scale * summary.std:.{digits}f}"


def percent(summary: Summary | None) -> str:
  """An accuracy between 0 and 1, as tables print it."""
  return show(summary, digits=1, scale=100.0)
