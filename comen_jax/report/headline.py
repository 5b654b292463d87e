"""What came out, in a few sentences, before any table.

COMEN is compared with DeepAll and with DeepAll + BatchNorm, seed by seed; every
other method with the one that has the same normalisation. A sentence names a
winner only if the 95 % interval of the difference leaves out 0; one seed has no
interval, so it never does.
"""

from comen_jax.report.document import Headline
from comen_jax.report.grouping import Comparison, Group, data_title
from comen_jax.report.records import Record
from comen_jax.report.statistics import average, bounds
from comen_jax.report.tables.accuracy import BEST_VALIDATION
from comen_jax.report.tables.differences import of_rows, show_interval
from comen_jax.variants import ABLATION

_BASELINES = ("deepall", "deepall_bn")
NO_CONCLUSION = "no conclusion"


def of(comparison: Comparison) -> Headline:
  """Says what the runs of a comparison show."""
  if len(comparison.records) == 1:
    return _of_one(comparison.groups[0].title, comparison.records[0])
  targets = comparison.targets
  found = [
    (ours, _difference(ours, other, targets))
    for ours in _methods(comparison)
    for other in _baselines(ours, comparison)
  ]
  lines = [line for _, line in found if line]
  compared = {ours.title for ours, line in found if line}
  lines += [
    f"{ours.title} has no run of DeepAll with the same target and seed beside"
    f" it: {NO_CONCLUSION}."
    for ours in _methods(comparison)
    if ours.title not in compared
  ]
  if not lines:
    lines = [f"There is no method to compare with DeepAll: {NO_CONCLUSION}."]
  return Headline(comparison.title, (*_averages(comparison), *lines))


def _of_one(title: str, record: Record) -> Headline:
  measured = record.measured
  images = f"{measured['target_images']:,} images"
  if "chance" in measured:
    images += f"; chance is {100 * measured['chance']:.1f} %"
  epoch = measured.get("selected_epoch")
  when = f" at epoch {epoch} of {measured['epochs']}" if epoch else ""
  return Headline(
    f"{title} on {data_title(measured['dataset'])}, target"
    f" {measured['target']} held out, seed {measured['seed']}",
    (
      f"Target accuracy: {100 * measured['target_accuracy']:.1f} % ({images})"
      f"{when}, which source validation chose"
      f" ({100 * measured['val_accuracy']:.1f} % there).",
      f"One run: {NO_CONCLUSION} about the method.",
    ),
  )


def _methods(comparison: Comparison) -> list[Group]:
  """COMEN and methods that are no row of its ablation."""
  own = [g for g in comparison.groups if g.setting.row not in ABLATION]
  return [g for g in (comparison.ours, *own) if g]


def _baselines(ours: Group, comparison: Comparison) -> list[Group]:
  """The rows that a method is compared with."""
  found = [g for g in comparison.groups if g.setting.row in _BASELINES]
  if ours is comparison.ours:
    return found
  return [g for g in found if _norms(g) & _norms(ours)] or found


def _norms(group: Group) -> set[str]:
  """Normalisations of a group's runs; old records do not have them."""
  runs = (r for by_seed in group.runs.values() for r in by_seed.values())
  return {r.measured["norm"] for r in runs if "norm" in r.measured}


def _averages(comparison: Comparison) -> list[str]:
  """The average over all targets of each method and baseline that has one."""
  shown = [g for g in comparison.groups if g.setting.row in _BASELINES]
  shown += _methods(comparison)
  found = [
    (g.title, average(g.values(BEST_VALIDATION), comparison.targets))
    for g in shown
  ]
  texts = [
    f"{title} {100 * s.mean:.1f} % ({s.runs} seed{'s' * (s.runs > 1)})"
    for title, s in found
    if s
  ]
  if not texts:
    return []
  number = len(comparison.targets)
  over = f"over {number} targets" if number > 1 else comparison.targets[0]
  return [f"Target accuracy, {over}: {', '.join(texts)}."]


def _difference(ours: Group, other: Group, targets: tuple[str, ...]) -> str:
  """Prints a difference and what follows from it; "" without common runs."""
  found = of_rows(ours, other, targets)
  both = tuple(target for target in targets if found[target])
  summary = average(found, both)
  if summary is None:
    return ""
  missing = "" if both == targets else f" on {', '.join(both)} alone"
  text = (
    f"{ours.title} minus {other.title}{missing}: {100 * summary.mean:+.1f}"
    " points"
  )
  ends = bounds(summary)
  if ends is None:
    return f"{text}; one seed: {NO_CONCLUSION}."
  text += f" (95 % interval {show_interval(ends)}, {summary.runs} seeds)"
  if ends[0] > 0 or ends[1] < 0:
    better = ours if ends[0] > 0 else other
    return f"{text}: {better.title} is better."
  return f"{text}: {NO_CONCLUSION}, the interval holds 0."
