"""What a `prepare` found, for the log; latent domains beside the true ones."""

from typing import Any

from comen_jax import metrics
from comen_jax.data.dataset import Dataset
from comen_jax.methods.base import Report
from comen_jax.run import console


def record(report: Report, dataset: Dataset) -> dict[str, Any]:
  """Returns the record of a `prepare`; prints its latent domains and warnings.

  Args:
    report: what the `prepare` found.
    dataset: all rows; true domains and classes serve only to evaluate.
  """
  found = dict(report.metrics)
  warnings = list(report.warnings)
  if report.latent:
    rows, probs = report.latent
    found |= metrics.latent_domains(
      probs, dataset.domains[rows], dataset.labels[rows]
    )
    console.latent_domains(found)
    warnings.append(
      metrics.collapse_warning(
        found["effective_domains"], found["domain_sizes"]
      )
    )
  for warning in filter(None, warnings):
    console.warn(warning)
  return found
