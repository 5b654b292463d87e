"""What COMEN does before its stages: find domains, start prototypes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax import discovery, prototypes, steps
from comen_jax.methods.comen_losses import Memory
from comen_jax.stage import Latent, Report
from comen_jax.train_state import TrainState

PREDICTOR = "domain_predictor"  # F_d's name inside the backbone.


def prepare_discover(
  state: TrainState, sources: Any, feature_step: Any, key: jax.Array, **how: Any
) -> tuple[TrainState, Report]:
  """Pretrains F_d on clusters of style; see `discovery`."""
  found = discovery.pretrain_predictor(state, sources, feature_step, key, **how)
  backbone = {**state.params["backbone"], PREDICTOR: found.params}
  statistics = {"mean": found.mean, "std": found.std}
  state = state.replace(
    params={**state.params, "backbone": backbone},
    batch_stats={**state.batch_stats, PREDICTOR: statistics},
  )
  outputs = _source_outputs(state, sources, feature_step, key)
  warnings = ()
  if found.agreement < 0.9:
    warnings = (
      f"F_d agrees with the clustering on {found.agreement:.0%} of held-out"
      " images only; raise comen.pretrain_steps or try another clustering",
    )
  probs = _softmax(outputs.domain_logits)
  return state, Report(
    {"pretrain_agreement": found.agreement},
    Latent(sources.rows, probs),
    warnings,
  )


def prepare_encode(
  state: TrainState, sources: Any, feature_step: Any, key: jax.Array, *, label
) -> tuple[TrainState, Report]:
  """Freezes domain labels of all source images and starts the prototypes.

  Prototypes are means over the training images (Eq. 6); validation images are
  labelled too, for the log, but nothing is learned from them.
  """
  outputs = _source_outputs(state, sources, feature_step, key)
  probs = label(sources, outputs, key)
  domains = np.full(state.memory.domains.shape, -1, np.int32)
  domains[sources.rows] = probs.argmax(axis=1)
  learn = np.isin(sources.rows, sources.train_rows)
  num_domains, num_classes, _ = state.memory.prototypes.values.shape
  rows = sources.rows[learn]
  memory = Memory(
    prototypes.from_features(
      outputs.features[learn],
      sources.labels(rows),
      domains[rows],
      num_domains,
      num_classes,
    ),
    jnp.asarray(domains),
  )
  report = Report(
    {"prototypes_seen": float(memory.prototypes.seen.sum())},
    Latent(sources.rows, probs),
  )
  return state.replace(memory=memory), report


def _source_outputs(state, sources, feature_step, key):
  """The backbone's outputs for all source rows, evaluation view."""
  rows = sources.rows
  step = lambda batch: feature_step(state, batch, key, False)
  return steps.map_rows(step, sources.batches(rows), len(rows))


def predicted_domains(sources: Any, outputs: Any, key: jax.Array) -> np.ndarray:
  """F_d's probabilities [N, M]."""
  return _softmax(outputs.domain_logits)


def random_domains(
  sources: Any, outputs: Any, key: jax.Array, *, num_domains: int
) -> np.ndarray:
  """One-hot [N, M], uniform: the paper's rows without SDNorm."""
  count = len(outputs.logits)
  drawn = np.asarray(jax.random.randint(key, (count,), 0, num_domains))
  return np.eye(num_domains)[drawn]


def true_domains(
  sources: Any, outputs: Any, key: jax.Array, *, num_domains: int
) -> np.ndarray:
  """One-hot [N, M] of the domain labels: what perfect discovery would give."""
  return np.eye(num_domains)[sources.true_domains(sources.rows)]


def _softmax(logits: np.ndarray) -> np.ndarray:
  return np.asarray(jax.nn.softmax(logits, axis=-1), np.float64)
