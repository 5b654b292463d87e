"""Which rows of a comparison are subtracted from each other, seed by seed.

COMEN is compared with DeepAll and with DeepAll + BatchNorm, every other method
with the one of the two that has the same normalisation, or with both if neither
has it. COMEN with another method is also compared with that method alone, which
says what COMEN adds.

Runs of one seed have the same initialisation and order of batches, whatever
their method. So the difference of two of them varies less than each one does.
"""

from typing import NamedTuple

from comen_jax.report.grouping import Comparison, Group
from comen_jax.report.statistics import Values, paired
from comen_jax.report.tables.accuracy import BEST_VALIDATION
from comen_jax.variants import ABLATION

_BASELINES = ("deepall", "deepall_bn")
_WITHOUT_COMEN = {  # The same change of pictures or feature maps.
  "comen_mixstyle": "mixstyle_bn",
  "comen_randconv": "deepall_bn_randconv",
  "comen_fact": "deepall_bn_amplitude",
  "comen_amplitude": "deepall_bn_amplitude",
}


class Pair(NamedTuple):
  """A method, and the baseline that is subtracted from it."""

  ours: Group
  other: Group


def of_methods(comparison: Comparison) -> list[Pair]:
  """Returns all pairs of a method and a baseline, in the order of methods."""
  return [
    Pair(ours, other)
    for ours in methods(comparison)
    for other in _baselines_of(ours, comparison)
  ]


def methods(comparison: Comparison) -> list[Group]:
  """COMEN and methods that are no row of its ablation."""
  own = [g for g in comparison.groups if g.setting.row not in ABLATION]
  return [g for g in (comparison.ours, *own) if g]


def baselines(comparison: Comparison) -> list[Group]:
  """DeepAll and DeepAll + BatchNorm, as far as they are there."""
  return [g for g in comparison.groups if g.setting.row in _BASELINES]


def differences(ours: Group, other: Group, targets: tuple[str, ...]) -> Values:
  """Returns the differences of two rows' accuracy, by target and seed."""
  return paired(
    ours.values(BEST_VALIDATION), other.values(BEST_VALIDATION), targets
  )


def _baselines_of(ours: Group, comparison: Comparison) -> list[Group]:
  """The rows that a method is compared with."""
  found = baselines(comparison)
  if ours is comparison.ours:
    return found
  alone = _WITHOUT_COMEN.get(ours.setting.row)
  return [
    *([g for g in found if _norms(g) & _norms(ours)] or found),
    *(g for g in comparison.groups if g.setting.row == alone),
  ]


def _norms(group: Group) -> set[str]:
  """Normalisations of a group's runs; old records do not have them."""
  runs = (r for by_seed in group.runs.values() for r in by_seed.values())
  return {r.measured["norm"] for r in runs if "norm" in r.measured}
