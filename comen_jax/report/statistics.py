"""Means and standard deviations over seeds.

The deviation is that of a sample (ddof 1): the seeds are a sample of all seeds.
The average over targets is taken within each seed first, then summarised over
seeds. So its deviation says how much whole leave-one-domain-out rounds differ.
Averaging the targets' means would give the same mean, but no deviation.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# A value per target and seed.
Values = Mapping[str, Mapping[int, float]]


class Summary(NamedTuple):
  """Mean and deviation of at least one run; `std` of one run is None."""

  mean: float
  std: float | None
  runs: int


def summarise(values: Iterable[float]) -> Summary | None:
  """Returns mean and deviation; None if there is no value."""
  values = list(values)
  if not values:
    return None
  mean = math.fsum(values) / len(values)
  if len(values) == 1:
    return Summary(mean, None, 1)
  squares = math.fsum((v - mean) ** 2 for v in values)
  return Summary(mean, math.sqrt(squares / (len(values) - 1)), len(values))


def average(values: Values, targets: Iterable[str]) -> Summary | None:
  """Averages over `targets`, using the seeds that have every target.

  Returns None if no seed has: an average over some targets would be another
  benchmark.
  """
  columns = [values.get(target, {}) for target in targets]
  if not columns:
    return None
  seeds = set.intersection(*map(set, columns))
  return summarise(
    math.fsum(column[seed] for column in columns) / len(columns)
    for seed in sorted(seeds)
  )


def paired(one: Values, other: Values, targets: Iterable[str]) -> Values:
  """Differences `one` - `other` of the runs that both have."""
  return {
    target: {
      seed: value - other[target][seed]
      for seed, value in one.get(target, {}).items()
      if seed in other.get(target, {})
    }
    for target in targets
  }


def interval(summary: Summary | None, level: float = 0.95) -> float | None:
  """Half the width of Student's interval of the mean; None for a single run."""
  if summary is None or summary.std is None:
    return None
  # Imported here: most reports need no quantile of t.
  from scipy.special import stdtrit

  t = float(stdtrit(summary.runs - 1, 0.5 + level / 2))
  return t * summary.std / math.sqrt(summary.runs)


def bounds(summary: Summary | None) -> tuple[float, float] | None:
  """Ends of the 95 % interval of the mean; None for a single run."""
  half = interval(summary)
  return None if half is None else (summary.mean - half, summary.mean + half)


def show(summary: Summary | None, digits: int = 1, scale: float = 1.0) -> str:
  """Prints "62.5 ± 0.4", or "62.5" for a single run, or "" for none."""
  if summary is None:
    return ""
  mean = f"{scale * summary.mean:.{digits}f}"
  if summary.std is None:
    return mean
  return f"{mean} ± {scale * summary.std:.{digits}f}"


def percent(summary: Summary | None) -> str:
  """Prints an accuracy between 0 and 1 in per cent."""
  return show(summary, digits=1, scale=100.0)
