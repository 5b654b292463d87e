"""What came out, in a few sentences, before any table.

`report/pairs.py` says which method is compared with which baseline. A sentence
names a winner only if the 95 % interval of the difference leaves out 0; one
seed has no interval, so it never does. Several methods of one seed each share a
sentence.
"""

from typing import NamedTuple

from comen_jax.report import pairs
from comen_jax.report.document import Headline
from comen_jax.report.grouping import Comparison, Group, data_title
from comen_jax.report.records import Record
from comen_jax.report.statistics import Summary, average, bounds
from comen_jax.report.tables.accuracy import BEST_VALIDATION
from comen_jax.report.tables.differences import show_interval

_MANY = 6  # More averages than these are left to the table.
NO_CONCLUSION = "no conclusion"


class _Difference(NamedTuple):
  """A method minus a baseline, over the targets where both have runs."""

  ours: Group
  other: Group
  targets: tuple[str, ...]
  summary: Summary


def of(comparison: Comparison) -> Headline:
  """Says what the runs of a comparison show."""
  if len(comparison.records) == 1:
    return _of_one(comparison.groups[0].title, comparison.records[0])
  found = _differences(comparison)
  sentences = sorted(_by_sentence(found, comparison), key=lambda s: len(s) > 1)
  lines = [
    _shared_sentence(same)
    if len(same) > 1
    else _sentence(same[0], comparison.targets)
    for same in sentences
  ]
  compared = {d.ours.title for d in found}
  lines += [
    f"{ours.title} has no run of DeepAll with the same target and seed beside"
    f" it: {NO_CONCLUSION}."
    for ours in pairs.methods(comparison)
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


def _averages(comparison: Comparison) -> list[str]:
  """The average over all targets of each method and baseline that has one.

  Of many, only COMEN and the baselines are named.
  """
  groups = pairs.baselines(comparison) + pairs.methods(comparison)
  found = [
    (group, average(group.values(BEST_VALIDATION), comparison.targets))
    for group in groups
  ]
  found = [(group, summary) for group, summary in found if summary]
  first = [*pairs.baselines(comparison), comparison.ours]
  shown = [pair for pair in found if len(found) <= _MANY or pair[0] in first]
  if not shown:
    return []
  texts = [
    f"{g.title} {100 * s.mean:.1f} % ({s.runs} seed{'s' * (s.runs > 1)})"
    for g, s in shown
  ]
  number = len(comparison.targets)
  over = f"over {number} targets" if number > 1 else comparison.targets[0]
  left = len(found) - len(shown)
  rest = f"; {left} more methods are in the table" if left else ""
  return [f"Target accuracy, {over}: {', '.join(texts)}{rest}."]


def _differences(comparison: Comparison) -> list[_Difference]:
  """All pairs that have common runs."""
  made = []
  for ours, other in pairs.of_methods(comparison):
    found = pairs.differences(ours, other, comparison.targets)
    both = tuple(target for target in comparison.targets if found[target])
    if summary := average(found, both):
      made.append(_Difference(ours, other, both, summary))
  return made


def _by_sentence(
  found: list[_Difference], comparison: Comparison
) -> list[list[_Difference]]:
  """Groups differences: those of one seed to the same baseline go together."""
  groups: dict[tuple[str, str], list[_Difference]] = {}
  for d in found:
    whole = d.targets == comparison.targets
    shares = whole and d.summary.runs == 1 and d.ours is not comparison.ours
    key = ("" if shares else d.ours.title, d.other.title)
    groups.setdefault(key, []).append(d)
  return list(groups.values())


def _shared_sentence(same: list[_Difference]) -> str:
  """Prints differences of one seed, the largest first."""
  parts = [
    f"{100 * d.summary.mean:+z.1f} {d.ours.title}"
    for d in sorted(same, key=lambda d: -d.summary.mean)
  ]
  return (
    f"Differences to {same[0].other.title} in points, one seed each,"
    f" {NO_CONCLUSION}: {'; '.join(parts)}."
  )


def _sentence(d: _Difference, targets: tuple[str, ...]) -> str:
  """Prints a difference and what follows from it."""
  missing = "" if d.targets == targets else f" on {', '.join(d.targets)} alone"
  text = (
    f"{d.ours.title} minus {d.other.title}{missing}:"
    f" {100 * d.summary.mean:+z.1f} points"
  )
  ends = bounds(d.summary)
  if ends is None:
    return f"{text}; one seed: {NO_CONCLUSION}."
  text += f" (95 % interval {show_interval(ends)}, {d.summary.runs} seeds)"
  if ends[0] > 0 or ends[1] < 0:
    better = d.ours if ends[0] > 0 else d.other
    return f"{text}: {better.title} is better."
  return f"{text}: {NO_CONCLUSION}, the interval holds 0."
