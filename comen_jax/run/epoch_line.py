"""The line of an epoch: the most important values first, cut to a width.

It shows whatever numbers a record has, so a new metric needs no change here. A
line in `MEANINGS` gives it a shorter name and says what it means.
"""

from collections.abc import Mapping
from typing import Any

_FIRST = ("val_accuracy", "loss", "effective_domains", "domain_agreement")
_PERCENT = ("accuracy", "agreement", "edge_share")
_HIDDEN = ("seconds",)
# Short name of a metric, and what it means to a reader who sees it first.
MEANINGS = {
  "val_accuracy": ("val", "accuracy on validation images of the sources"),
  "target_accuracy": ("target", "accuracy on the target, only for the oracle"),
  "effective_domains": (
    "domains",
    "effective number of latent domains; 1: all images are in one",
  ),
  "domain_agreement": (
    "agree",
    "training images that keep the latent domain found at the stage's start",
  ),
  "loss_cls": ("loss_cls", "cross-entropy of the classes"),
  "loss_d": (
    "loss_d",
    "how undecided the domain predictor is (entropy); 0: it is certain",
  ),
  "loss_protogr": ("loss_protogr", "classes of the prototypes in their graph"),
  "loss_protoccl": (
    "loss_protoccl",
    "contrast of the prototypes of different classes",
  ),
  # Of other methods.
  "domain_accuracy": (
    "domain",
    "images whose domain the adversary finds; the features hide it",
  ),
  "loss_domain": ("loss_domain", "cross-entropy of the domains"),
  "loss_entropy": ("loss_entropy", "how undecided the classes are (entropy)"),
  "muted_images": ("muted", "share of the images that are muted"),
  "loss_mixed": ("loss_mixed", "cross-entropy of the mixed images"),
  "loss_teacher": ("loss_teacher", "divergence from the slow teacher"),
  "loss_agree": ("loss_agree", "disagreement of three views of an image"),
  "loss_order": ("loss_order", "cross-entropy of the order of the tiles"),
  "loss_triplet": ("loss_triplet", "triplets against the slow teacher"),
  "loss_style": ("loss_style", "cross-entropy of the path that sees style"),
  "loss_adversary": ("loss_adversary", "what style still says of the class"),
  "loss_penalty": ("loss_penalty", "penalty on domains that differ"),
}


def metrics(record: Mapping[str, Any]) -> dict[str, float]:
  """Returns the metrics of a record, the most important first."""
  numbers = {
    name: value
    for name, value in record.items()
    if isinstance(value, float) and name not in _HIDDEN
  }
  first = [name for name in _FIRST if name in numbers]
  terms = [name for name in numbers if name.startswith("loss")]
  return {name: numbers[name] for name in (*first, *terms, *numbers)}


def make(
  head: str, found: Mapping[str, float], tail: str, width: int | None
) -> tuple[str, list[str]]:
  """Returns a line of at most `width` columns, and the metrics it shows.

  Args:
    head: text at the beginning.
    found: metrics, the most important first; the last ones are left out if the
      line is too long.
    tail: text at the end, which stays.
    width: number of columns, or None without a limit.
  """
  parts, shown = [head], []
  for name, value in found.items():
    wanted = "  ".join([*parts, _one(name, value), tail])
    if width is not None and len(wanted) > width:
      break
    parts.append(_one(name, value))
    shown.append(name)
  return "  ".join([*parts, tail])[:width], shown


def percent(share: float) -> str:
  return f"{100 * share:.1f} %"


def number(value: float) -> str:
  """Writes a number with three digits: .512, 1.23, 12.3, 123, 1.2e-05."""
  size = abs(value)
  if value and not 0.001 <= size < 1e5:  # NaN and infinity come here, too.
    return f"{value:.1e}"
  digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
  text = f"{value:.{digits}f}"
  return text.replace("0.", ".", 1) if size < 1 else text


def _one(name: str, value: float) -> str:
  short = MEANINGS[name][0] if name in MEANINGS else name
  # Aligned: lines of epochs stand below each other.
  if name.endswith(_PERCENT):
    return f"{short} {percent(value):>6}"
  return f"{short} {number(value):>4}"
