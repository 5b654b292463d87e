"""The losses of COMEN's three stages, and what it remembers between steps."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp

from comen_jax import losses, prototypes, steps
from comen_jax.data.batches import Batch
from comen_jax.nn.protogr import ProtoGR
from comen_jax.train_state import TrainState


@flax.struct.dataclass
class Memory:
  """What COMEN remembers.

  Attributes:
    prototypes: per latent domain and class.
    domains: int32 [N], latent domain of each row, -1 until known.
  """

  prototypes: prototypes.Prototypes
  domains: jax.Array


def warmup_loss(
  params: Any,
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Any,
  num_domains: int,
):
  """L_cls with p = 1/M: SDNorm is BatchNorm while F_d knows nothing."""
  probs = jnp.full((len(batch.label), num_domains), 1.0 / num_domains)
  outputs, batch_stats = steps.forward(model, params, state, batch, key, probs)
  loss = losses.cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})


def discover_loss(
  params: Any,
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Any,
  entropy_weight: float,
  balance_weight: float,
):
  """L_cls + L_d (Eq. 15, 3), and what keeps the domains from merging.

  Entropy alone is least when all images share one domain; the balance term
  log M - H(mean p) is greatest there.
  """
  outputs, batch_stats = steps.forward(model, params, state, batch, key)
  logits = outputs.domain_logits
  loss_cls = losses.cross_entropy(outputs.logits, batch.label).mean()
  loss_d = losses.prediction_entropy(logits).mean()
  mean_entropy = losses.mean_prediction_entropy(logits)
  imbalance = jnp.log(logits.shape[1]) - mean_entropy
  loss = loss_cls + entropy_weight * loss_d + balance_weight * imbalance
  metrics = {
    "loss_cls": loss_cls,
    "loss_d": loss_d,
    "effective_domains": jnp.exp(mean_entropy),
  }
  return loss, (batch_stats, state.memory, metrics)


def encode_loss(
  params: Any,
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Any,
  graph: ProtoGR,
  protogr_weight: float,
  protoccl_weight: float,
  decay: float,
  temperature: float,
  normalize: bool,
):
  """L_cls + lambda L_ProtoGR + gamma L_ProtoCCL (Eq. 16).

  Both losses see the updated prototypes (Eq. 7); stored without gradient.
  """
  outputs, batch_stats = steps.forward(model, params, state, batch, key)
  loss_cls = losses.cross_entropy(outputs.logits, batch.label).mean()
  domains = state.memory.domains[batch.row]
  updated = prototypes.update(
    state.memory.prototypes, outputs.features, batch.label, domains, decay
  )
  loss, metrics = loss_cls, {"loss_cls": loss_cls}
  if protogr_weight:
    nodes = updated.values.reshape(-1, updated.values.shape[-1])
    valid = updated.seen.reshape(-1)
    logits = graph.apply({"params": params["protogr"]}, nodes, valid)
    value = losses.masked_mean(losses.node_classification(logits), valid)
    metrics["loss_protogr"] = value
    loss += protogr_weight * value
  if protoccl_weight:
    values = losses.protoccl(
      updated.values, updated.seen, temperature, normalize
    )
    has_positive = updated.seen & (updated.seen.sum(axis=0)[None] > 1)
    value = losses.masked_mean(values, has_positive)
    metrics["loss_protoccl"] = value
    loss += protoccl_weight * value
  if outputs.domain_logits is not None:
    same = outputs.domain_logits.argmax(axis=1) == domains
    metrics["domain_agreement"] = same.mean()
  memory = state.memory.replace(prototypes=jax.lax.stop_gradient(updated))
  return loss, (batch_stats, memory, metrics)
