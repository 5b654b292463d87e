"""COMEN: warm-up, discover, encode (paper, Sec. 3), and its ablations.

Without SDNorm there is nothing to discover: images get random domains, uniform,
as the paper does, and the first two stages are one. With all three parts off it
is DeepAll.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax import discovery, prototypes
from comen_jax.errors import UserError
from comen_jax.methods import deepall
from comen_jax.methods.comen_losses import (
  Memory,
  discover_loss,
  encode_loss,
  warmup_loss,
)
from comen_jax.methods.comen_prepare import (
  PREDICTOR,
  predicted_domains,
  prepare_discover,
  prepare_encode,
  random_domains,
)
from comen_jax.methods.comen_prepare import (
  true_domains as true_domain_labels,
)
from comen_jax.nn import protogr as protogr_lib
from comen_jax.stage import Method, Stage, Task, all_but
from comen_jax.train_state import TrainState


def create(
  task: Task,
  *,
  protogr: bool,
  protoccl: bool,
  protogr_weight: float,
  protoccl_weight: float,
  prototype_decay: float,
  affinity_threshold: float,
  temperature: float,
  protoccl_normalize: bool,
  entropy_weight: float,
  balance_weight: float,
  clustering: str,
  portion: float,
  pretrain_steps: int,
  style_gradient: bool,
  freeze_style_layer: bool,
  true_domains: bool,
) -> Method:
  """COMEN's stages.

  Args:
    task: `task.norm` other than "sdnorm" switches SDNorm and discovery off.
    protogr: use ProtoGR.
    protoccl: use ProtoCCL.
    protogr_weight: lambda of Eq. 16.
    protoccl_weight: gamma of Eq. 16.
    prototype_decay: rho of Eq. 7.
    affinity_threshold: delta of Eq. 8.
    temperature: tau of Eq. 14.
    protoccl_normalize: L2-normalise prototypes in Eq. 14.
    entropy_weight: of L_d (Eq. 3) in discover.
    balance_weight: of log M - H(mean p) in discover; keeps domains apart.
    clustering: of style, one of `discovery.CLUSTERINGS`.
    portion: share of the source images that is clustered.
    pretrain_steps: of F_d.
    style_gradient: let the losses of discover reach the backbone through the
      style. At the learning rate of digits this merges the domains.
    freeze_style_layer: freeze the layers that give the style, in encode.
    true_domains: pretrain F_d and label the prototypes with true domains, a
      bound that no method without domain labels may claim.
  """
  _check(clustering, portion)
  if true_domains and task.num_domains != task.num_sources:
    raise UserError(
      f"num_domains={task.num_domains}: comen.true_domains needs the number of"
      f" source domains, num_domains={task.num_sources}"
    )
  sdnorm = task.norm == "sdnorm"
  warmup_epochs, discover_epochs, encode_epochs = task.stage_epochs
  if not (sdnorm or protogr or protoccl):
    return deepall.create(task)

  graph = protogr_lib.ProtoGR(task.num_classes, affinity_threshold)
  shape = (task.num_domains, task.num_classes, task.feature_dim)
  encode = partial(
    encode_loss,
    graph=graph,
    protogr_weight=protogr_weight if protogr else 0.0,
    protoccl_weight=protoccl_weight if protoccl else 0.0,
    decay=prototype_decay,
    temperature=temperature,
    normalize=protoccl_normalize,
  )

  def init(key: jax.Array) -> tuple[dict[str, Any], Memory]:
    nodes = jnp.zeros((shape[0] * shape[1], shape[2]))
    valid = jnp.ones(len(nodes), bool)
    params = graph.init(key, nodes, valid)["params"]
    domains = jnp.full(task.num_rows, -1, jnp.int32)
    memory = Memory(prototypes.Prototypes.zeros(*shape), domains)
    return {"protogr": params}, memory

  describe = partial(_describe, threshold=affinity_threshold)
  if not sdnorm:
    plain = partial(deepall.classification, model=task.model)
    label = true_domain_labels if true_domains else random_domains
    label = partial(label, num_domains=task.num_domains)
    stages = (
      Stage("warmup", warmup_epochs + discover_epochs, plain),
      Stage(
        "encode",
        encode_epochs,
        partial(encode, model=task.model),
        prepare=partial(prepare_encode, label=label),
      ),
    )
    return Method(_used(stages), init, describe, true_domains)

  predictor = discovery.DomainPredictor(task.num_domains)
  frozen = ("backbone", PREDICTOR)
  uniform = partial(warmup_loss, model=task.model, num_domains=task.num_domains)
  discover = partial(
    discover_loss,
    model=task.model.clone(detach_style=not style_gradient),
    entropy_weight=entropy_weight,
    balance_weight=balance_weight,
  )
  prepare = partial(
    prepare_discover,
    predictor=predictor,
    clustering=clustering,
    true_domains=true_domains,
    portion=portion,
    num_steps=pretrain_steps,
  )
  label = predicted_domains
  if true_domains:
    label = partial(true_domain_labels, num_domains=task.num_domains)
  encode_mask = all_but(*frozen)
  if freeze_style_layer:
    for layer in task.model.style_layers:
      encode_mask = _both(encode_mask, all_but("backbone", layer))
  stages = (
    Stage("warmup", warmup_epochs, uniform, trainable=all_but(*frozen)),
    Stage("discover", discover_epochs, discover, prepare),
    Stage(
      "encode",
      encode_epochs,
      # F_d is frozen here and its probabilities are given, not learned.
      partial(encode, model=task.model.clone(detach_probs=True)),
      partial(prepare_encode, label=label),
      encode_mask,
    ),
  )
  return Method(_used(stages), init, describe, true_domains)


def _describe(state: TrainState, *, threshold: float) -> dict[str, np.ndarray]:
  """Prototypes [M, K, D], which are seen, and their affinity (Eq. 8)."""
  memory = state.memory.prototypes
  nodes = memory.values.reshape(-1, memory.values.shape[-1])
  graph = protogr_lib.affinity(nodes, memory.seen.reshape(-1), threshold)
  arrays = {
    "prototypes": memory.values,
    "prototypes_seen": memory.seen,
    "affinity": graph,
    "domains": state.memory.domains,
  }
  return {name: np.asarray(array) for name, array in arrays.items()}


def _both(one, other):
  return lambda params: jax.tree.map(
    lambda a, b: a and b, one(params), other(params)
  )


def _used(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
  """Stages of no epochs go, but what they prepare stays."""
  return tuple(s for s in stages if s.epochs or s.prepare)


def _check(clustering: str, portion: float) -> None:
  if clustering not in discovery.CLUSTERINGS:
    raise UserError(
      f"comen.clustering={clustering!r}: choose one of"
      f" {', '.join(discovery.CLUSTERINGS)}"
    )
  if not 0 < portion <= 1:
    raise UserError(
      f"comen.portion={portion}: give a share above 0 and at most 1"
    )
