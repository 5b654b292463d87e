"""Which epoch is chosen, and the accuracies of a run under each rule.

Source validation chooses the epoch. The target is tested once it is chosen, and
at the last epoch. A run that was asked for the oracle tests the target at every
candidate, and also gives its best epoch, which looks at the target.
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


def last(records: list[dict[str, Any]]) -> dict[str, Any]:
  """Returns the record of the last epoch."""
  return _candidates(records)[-1]


def figures_of(
  records: list[dict[str, Any]], target_accuracy: dict[int, float]
) -> dict[str, Any]:
  """Accuracies under each rule, and the last report on latent domains.

  Args:
    records: records of all units of a run.
    target_accuracy: of the chosen and of the last epoch, by the epoch's number.
  """
  chosen, final = best(records)["epoch"], last(records)["epoch"]
  by_epoch = {r["epoch"]: r for r in _candidates(records)}
  looked = [
    r["target_accuracy"] for r in by_epoch.values() if "target_accuracy" in r
  ]
  reports = [r for r in records if "domain_sizes" in r]
  latent = reports[-1] if reports else {}
  return {
    "selected_epoch": chosen,
    "val_accuracy": by_epoch[chosen]["val_accuracy"],
    "val_accuracy_last": by_epoch[final]["val_accuracy"],
    "target_accuracy": target_accuracy[chosen],
    "target_accuracy_last": target_accuracy[final],
    "target_accuracy_oracle": max(looked) if looked else None,
    **{name: latent.get(name) for name in _LATENT},
  }


def _candidates(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
  # Runs from before `candidate` existed tested the target at each one.
  return [r for r in records if r.get("candidate", "target_accuracy" in r)]
