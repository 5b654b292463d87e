"""The losses of COMEN's three stages, and what it remembers between steps."""

from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from comen_jax import losses, prototypes, steps
from comen_jax.data.batches import Batch
from comen_jax.methods.comen.options import Options
from comen_jax.nn.protogr import ProtoGR
from comen_jax.steps import Metrics
from comen_jax.train_state import TrainState

Result = tuple[jax.Array, tuple[Any, Any, Metrics]]


@flax.struct.dataclass
class Memory:
  """What COMEN remembers between steps.

  Attributes:
    prototypes: one prototype per latent domain and class.
    domains: int32 [N], latent domain of each row, -1 until it is known.
  """

  prototypes: prototypes.Prototypes
  domains: jax.Array


def warmup_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  num_domains: int,
) -> Result:
  """L_cls with p = 1/M: SDNorm is BatchNorm as long as F_d knows nothing."""
  probs = jnp.full((len(batch.label), num_domains), 1.0 / num_domains)
  outputs, batch_stats = steps.forward(model, state, batch, key, probs)
  loss = losses.cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})


def discover_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  options: Options,
) -> Result:
  """L_cls + L_d (Eq. 15, 3), and a term that keeps the domains apart.

  Entropy alone is least when all images share one domain. The balance term
  log M - H(mean p) is greatest there.
  """
  outputs, batch_stats = steps.forward(model, state, batch, key)
  logits = outputs.domain_logits
  loss_cls = losses.cross_entropy(outputs.logits, batch.label).mean()
  loss_d = losses.prediction_entropy(logits).mean()
  mean_entropy = losses.mean_prediction_entropy(logits)
  imbalance = jnp.log(float(logits.shape[1])) - mean_entropy
  loss = (
    loss_cls
    + options.entropy_weight * loss_d
    + options.balance_weight * imbalance
  )
  metrics = {
    "loss_cls": loss_cls,
    "loss_d": loss_d,
    "effective_domains": jnp.exp(mean_entropy),
  }
  return loss, (batch_stats, state.memory, metrics)


def encode_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  graph: ProtoGR,
  options: Options,
) -> Result:
  """L_cls + lambda L_ProtoGR + gamma L_ProtoCCL (Eq. 16).

  Both losses see the updated prototypes (Eq. 7), which are then stored without
  their gradient.
  """
  outputs, batch_stats = steps.forward(model, state, batch, key)
  loss_cls = losses.cross_entropy(outputs.logits, batch.label).mean()
  domains = state.memory.domains[batch.row]
  updated = prototypes.update(
    state.memory.prototypes,
    outputs.features,
    batch.label,
    domains,
    options.prototype_decay,
  )
  loss, metrics = loss_cls, {"loss_cls": loss_cls}
  if options.protogr and options.protogr_weight:
    value = _protogr(state.params["protogr"], updated, graph)
    metrics["loss_protogr"] = value
    loss += options.protogr_weight * value
  if options.protoccl and options.protoccl_weight:
    value = _protoccl(updated, options)
    metrics["loss_protoccl"] = value
    loss += options.protoccl_weight * value
  if outputs.domain_logits is not None:
    same = outputs.domain_logits.argmax(axis=1) == domains
    metrics["domain_agreement"] = same.mean()
  memory = state.memory.replace(prototypes=jax.lax.stop_gradient(updated))
  return loss, (batch_stats, memory, metrics)


def _protogr(
  params: Any, memory: prototypes.Prototypes, graph: ProtoGR
) -> jax.Array:
  """Mean of L_ProtoGR (Eq. 12) over the prototypes that were seen."""
  nodes = memory.values.reshape(-1, memory.values.shape[-1])
  seen = memory.seen.reshape(-1)
  logits = graph.apply({"params": params}, nodes, seen)
  return losses.masked_mean(losses.node_classification(logits), seen)


def _protoccl(memory: prototypes.Prototypes, options: Options) -> jax.Array:
  """Mean of L_ProtoCCL (Eq. 14) over the prototypes that have a positive."""
  values = losses.protoccl(
    memory.values, memory.seen, options.temperature, options.protoccl_normalize
  )
  has_positive = memory.seen & (memory.seen.sum(axis=0)[None] > 1)
  return losses.masked_mean(values, has_positive)
