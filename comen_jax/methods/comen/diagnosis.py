"""How much the prototype losses act: gradients, edges and cosines."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax import losses, steps
from comen_jax.data.batches import Batch
from comen_jax.methods.base import Forward
from comen_jax.methods.comen.losses import (
  protoccl,
  protogr,
  true_probs,
  update_prototypes,
)
from comen_jax.methods.comen.options import Options
from comen_jax.nn.protogr import ProtoGR, affinity, centred
from comen_jax.prototypes import Prototypes
from comen_jax.steps import Metrics
from comen_jax.train_state import TrainState


def diagnose(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  graph: ProtoGR,
  options: Options,
  forward: Forward = steps.forward,
) -> Metrics:
  """Measures one batch of encode, with the forward pass that trains it.

  Returns:
    `share_protogr` and `share_protoccl`: norm of the gradient of the weighted
    loss in the features, divided by that of L_cls; `edge_share`: share of the
    pairs of prototypes that are neighbours (Eq. 8); `cosine_within` and
    `cosine_between`: mean cosine of two prototypes of one class and of two
    classes, in the form that the losses compare.
  """
  sdnorm = model.norm == "sdnorm"
  probs = true_probs(state, batch, options) if sdnorm else None
  outputs, _ = forward(model, state, batch, key, probs)
  head = state.params["backbone"][model.head]

  def loss_cls(features: jax.Array) -> jax.Array:
    logits = jnp.dot(features, head["kernel"]) + head["bias"][None]
    return losses.cross_entropy(logits, batch.label).mean()

  updated = lambda f: update_prototypes(state.memory, f, batch, options)
  graph_params = state.params["protogr"]
  terms = {}
  if options.protogr and options.protogr_weight:
    terms["protogr"] = lambda f: (
      options.protogr_weight * protogr(graph_params, updated(f), graph)
    )
  if options.protoccl and options.protoccl_weight:
    terms["protoccl"] = lambda f: (
      options.protoccl_weight * protoccl(updated(f), options)
    )
  norm = lambda loss: jnp.linalg.norm(jax.grad(loss)(outputs.features))
  whole = jnp.maximum(norm(loss_cls), 1e-12)
  shares = {f"share_{n}": norm(loss) / whole for n, loss in terms.items()}
  return shares | _geometry(state.memory.prototypes, graph)


def _geometry(memory: Prototypes, graph: ProtoGR) -> Metrics:
  """Edges and cosines of all pairs of prototypes that were seen."""
  M, K, D = memory.values.shape
  nodes, seen = memory.values.reshape(M * K, D), memory.seen.reshape(-1)
  edges = affinity(nodes, seen, graph.threshold, graph.centre) > 0
  if graph.centre:
    nodes = centred(nodes, seen)
  length = jnp.linalg.norm(nodes, axis=1, keepdims=True)
  unit = nodes / jnp.maximum(length, 1e-6)
  cosine = jnp.dot(unit, unit.T, precision=jax.lax.Precision.HIGHEST)
  label = jnp.arange(M * K) % K
  pairs = seen[:, None] & seen[None, :] & ~jnp.eye(M * K, dtype=bool)
  same = label[:, None] == label[None, :]
  return {
    "edge_share": losses.masked_mean(edges.astype(jnp.float32), pairs),
    "cosine_within": losses.masked_mean(cosine, pairs & same),
    "cosine_between": losses.masked_mean(cosine, pairs & ~same),
  }
