"""What is measured: classification, and latent against true domains."""

import clu.metrics
import flax.struct
import jax
import numpy as np


@flax.struct.dataclass
class EvalMetrics(clu.metrics.Collection):
  """Masked accuracy and loss, exact over padded batches of any size."""

  accuracy: clu.metrics.Accuracy
  loss: clu.metrics.Average.from_output("loss")


def probabilities(logits: np.ndarray) -> np.ndarray:
  """Softmax over the last axis, as float64 numpy."""
  return np.asarray(jax.nn.softmax(logits, axis=-1), np.float64)


def effective_number(mean_probs: np.ndarray) -> float:
  """exp(H(mean p)) of probabilities [M]: 1 when collapsed, M when even."""
  p = np.asarray(mean_probs, np.float64)
  p = p[p > 0]
  return float(np.exp(-np.sum(p * np.log(p))))


def latent_domains(
  probs: np.ndarray, true_domains: np.ndarray, classes: np.ndarray
) -> dict[str, float | list[int]]:
  """Describes discovered domains and what they agree with.

  Args:
    probs: [N, M], probabilities of F_d.
    true_domains: [N], true domains, for evaluation only.
    classes: [N], classes.

  Returns:
    `domain_sizes` (images per latent domain), `effective_domains`,
    `nmi_domain` and `nmi_class` (normalised mutual information of the argmax).
  """
  # Imported here: only training needs it, and it takes a second.
  from sklearn.metrics import normalized_mutual_info_score

  found = probs.argmax(axis=1)
  report = {
    "domain_sizes": np.bincount(found, minlength=probs.shape[1]).tolist(),
    "effective_domains": effective_number(probs.mean(axis=0)),
    "nmi_class": float(normalized_mutual_info_score(classes, found)),
  }
  if len(np.unique(true_domains)) > 1:
    nmi = normalized_mutual_info_score(true_domains, found)
    report["nmi_domain"] = float(nmi)
  return report


def collapse_warning(effective: float, sizes: list[int]) -> str | None:
  """One line if the latent domains have (nearly) merged, else None."""
  total, num_domains = sum(sizes), len(sizes)
  small = [m for m, n in enumerate(sizes) if n < 0.01 * total]
  if num_domains > 1 and (small or effective < 0.5 * (1 + num_domains)):
    return (
      f"latent domains are collapsing: sizes {sizes}, effective number"
      f" {effective:.2f} of {num_domains}; raise comen.balance_weight or lower"
      " num_domains"
    )
  return None
