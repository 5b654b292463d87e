"""The losses of COMEN's three stages, and what it remembers between steps."""

from typing import Any

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from comen_jax import losses, prototypes, steps
from comen_jax.data.batches import Batch
from comen_jax.methods.base import Forward
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
  forward: Forward = steps.forward,
) -> Result:
  """L_cls with p = 1/M: SDNorm is BatchNorm as long as F_d knows nothing."""
  probs = jnp.full((len(batch.label), num_domains), 1.0 / num_domains)
  state = state.replace(params=_branches_as_one(state.params, num_domains))
  outputs, batch_stats = forward(model, state, batch, key, probs)
  loss = losses.cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})


def _branches_as_one(params: Any, num_domains: int) -> Any:
  """Lets each branch of an SDNorm learn as fast as a BatchNorm would.

  With p = 1/M a branch gets 1/M of the gradient of its scale and bias. Here the
  values stay, and the gradient is M times as large.
  """

  def whole(keys, value: jax.Array) -> jax.Array:
    if keys[-1].key not in ("scale", "bias") or value.ndim != 2:
      return value
    fixed = jax.lax.stop_gradient(value)
    return fixed + num_domains * (value - fixed)

  return jax.tree_util.tree_map_with_path(whole, params)


def true_probs(
  state: TrainState, batch: Batch, options: Options
) -> jax.Array | None:
  """One-hot true domains [B, M] for SDNorm, or None: then p is F_d's."""
  if not options.true_domains:
    return None
  num_domains = state.memory.prototypes.values.shape[0]
  return jax.nn.one_hot(state.memory.domains[batch.row], num_domains)


def discover_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  options: Options,
  forward: Forward = steps.forward,
) -> Result:
  """L_cls + L_d (Eq. 15, 3), and terms that keep the domains.

  Entropy alone is least when all images share one domain. The balance term
  log M - H(mean p) is greatest there. The anchor is the cross-entropy between
  F_d and the labels of the clustering.
  """
  probs = true_probs(state, batch, options)
  outputs, batch_stats = forward(model, state, batch, key, probs)
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
  labels = state.memory.domains[batch.row]
  metrics = {
    "loss_cls": loss_cls,
    "loss_d": loss_d,
    "effective_domains": jnp.exp(mean_entropy),
    "domain_agreement": (logits.argmax(axis=1) == labels).mean(),
  }
  if options.anchor_weight:
    loss += options.anchor_weight * losses.cross_entropy(logits, labels).mean()
  return loss, (batch_stats, state.memory, metrics)


def encode_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  graph: ProtoGR,
  options: Options,
  forward: Forward = steps.forward,
) -> Result:
  """L_cls + lambda L_ProtoGR + gamma L_ProtoCCL (Eq. 16).

  Both losses see the updated prototypes (Eq. 7), which are then stored without
  their gradient.
  """
  # Without SDNorm the domains only label the prototypes.
  sdnorm = model.norm == "sdnorm"
  probs = true_probs(state, batch, options) if sdnorm else None
  outputs, batch_stats = forward(model, state, batch, key, probs)
  loss_cls = losses.cross_entropy(outputs.logits, batch.label).mean()
  domains = state.memory.domains[batch.row]
  updated = update_prototypes(state.memory, outputs.features, batch, options)
  loss, metrics = loss_cls, {"loss_cls": loss_cls}
  if options.protogr and options.protogr_weight:
    value = protogr(state.params["protogr"], updated, graph)
    metrics["loss_protogr"] = value
    loss += options.protogr_weight * value
  if options.protoccl and options.protoccl_weight:
    value = protoccl(updated, options)
    metrics["loss_protoccl"] = value
    loss += options.protoccl_weight * value
  if outputs.domain_logits is not None:
    same = outputs.domain_logits.argmax(axis=1) == domains
    metrics["domain_agreement"] = same.mean()
  memory = state.memory.replace(prototypes=jax.lax.stop_gradient(updated))
  return loss, (batch_stats, memory, metrics)


def update_prototypes(
  memory: Memory, features: jax.Array, batch: Batch, options: Options
) -> prototypes.Prototypes:
  """The prototypes after a batch (Eq. 7), with the gradient of its features."""
  return prototypes.update(
    memory.prototypes,
    features,
    batch.label,
    memory.domains[batch.row],
    options.prototype_decay,
    straight_through=options.straight_through,
  )


def protogr(
  params: Any, memory: prototypes.Prototypes, graph: ProtoGR
) -> jax.Array:
  """Mean of L_ProtoGR (Eq. 12) over the prototypes that were seen."""
  nodes = memory.values.reshape(-1, memory.values.shape[-1])
  seen = memory.seen.reshape(-1)
  logits = graph.apply({"params": params}, nodes, seen)
  return losses.masked_mean(losses.node_classification(logits), seen)


def protoccl(memory: prototypes.Prototypes, options: Options) -> jax.Array:
  """Mean of L_ProtoCCL (Eq. 14) over the prototypes that have a positive."""
  values = losses.protoccl(
    memory.values,
    memory.seen,
    options.temperature,
    normalize=options.prototype_form != "raw",
    centre=options.prototype_form == "centred",
  )
  has_positive = memory.seen & (memory.seen.sum(axis=0)[None] > 1)
  return losses.masked_mean(values, has_positive)
