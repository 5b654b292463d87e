"""Which epoch is chosen, and the accuracies of a run under each rule.

Source validation chooses the epoch. Results also give the target's accuracy at
the last epoch and at its own best epoch (`oracle`, which looks at the target).
"""

from typing import Any

from comen_jax.metrics import EvalMetrics

_LATENT = ("nmi_domain", "nmi_class", "effective_domains", "domain_sizes")


def rank(val: EvalMetrics, epoch: int) -> float:
  """Orders checkpoints by correct validation answers; the later wins a tie.

  The number of correct answers is whole, so the fraction only settles ties.
  """
  return float(val.accuracy.total) + epoch / (epoch + 1)


def accuracy(values: EvalMetrics) -> float:
  """Share of correct answers."""
  return float(values.accuracy.total) / float(values.accuracy.count)


def best(records: list[dict[str, Any]]) -> dict[str, Any]:
  """Returns the record of the chosen epoch."""
  return max(
    _candidates(records), key=lambda r: (r["val_accuracy"], r["epoch"])
  )


def figures_of(records: list[dict[str, Any]]) -> dict[str, Any]:
  """Accuracies under each rule, and the last report on latent domains."""
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
