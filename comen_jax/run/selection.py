"""Which epoch is chosen, and the figures of a run under each rule.

The rule is source validation; the target's accuracy at the last epoch and at
its own best (`oracle`, which looks at the target) stand beside it.
"""

from typing import Any

from comen_jax.metrics import EvalMetrics

_LATENT = ("nmi_domain", "nmi_class", "effective_domains", "domain_sizes")


def rank(val: EvalMetrics, epoch: int) -> float:
  """Orders checkpoints: correct validation answers, ties to the later.

  Correct answers are whole numbers, so the fraction only settles ties.
  """
  return float(val.accuracy.total) + epoch / (epoch + 1)


def accuracy(values: EvalMetrics) -> float:
  return float(values.accuracy.total) / float(values.accuracy.count)


def best(records: list[dict[str, Any]]) -> dict[str, Any]:
  """The record of the chosen epoch."""
  return max(
    _candidates(records), key=lambda r: (r["val_accuracy"], r["epoch"])
  )


def figures_of(records: list[dict[str, Any]]) -> dict[str, Any]:
  """The accuracies under each rule, and the last report on latent domains."""
  candidates = _candidates(records)
  chosen, last = best(records), candidates[-1]
  reports = [r for r in records if "domain_sizes" in r]
  latent = reports[-1] if reports else {}
  return {
    "selected_epoch": chosen["epoch"],
    "val_accuracy": chosen["val_accuracy"],
    "val_accuracy_last": last["val_accuracy"],
    "target_accuracy": chosen["target_accuracy"],
    "target_accuracy_last": last["target_accuracy"],
    "target_accuracy_oracle": max(r["target_accuracy"] for r in candidates),
    **{name: latent.get(name) for name in _LATENT},
  }


def _candidates(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
  return [r for r in records if "target_accuracy" in r]
