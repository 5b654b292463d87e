"""COMEN: warm-up, discover, encode (paper, Sec. 3), and its ablations.

Without SDNorm there is nothing to discover: images get random domains, as in
the paper's ablation, and the first two stages are one. With all three parts
switched off, COMEN is DeepAll.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax import prototypes, steps
from comen_jax.errors import UserError
from comen_jax.methods import deepall
from comen_jax.methods.base import Forward, Method, Stage, Task, split_epochs
from comen_jax.methods.comen import discovery, pictures, prepare
from comen_jax.methods.comen.diagnosis import diagnose
from comen_jax.methods.comen.losses import (
  Memory,
  discover_loss,
  encode_loss,
  warmup_loss,
)
from comen_jax.methods.comen.options import Options, check
from comen_jax.nn.protogr import ProtoGR, affinity
from comen_jax.nn.style import DomainPredictor
from comen_jax.train_state import TrainState

__all__ = ["Options", "check", "check_images", "create"]

_PREDICTOR = f"backbone/{prepare.PREDICTOR}"
_PROTOGR = "protogr"  # Nothing trains it before encode, weight decay neither.


def check_images(
  options: Options, norm: str, num_domains: int, images: int
) -> None:
  """Raises UserError if there are too few images to discover domains in.

  Args:
    options: settings of COMEN.
    norm: normalisation of the backbone.
    num_domains: number of latent domains M.
    images: number of source images for training.
  """
  if norm == "sdnorm":
    discovery.portion_size(options.portion, images, num_domains)


def create(
  task: Task, options: Options, forward: Forward = steps.forward
) -> Method:
  """Makes COMEN. A norm other than "sdnorm" switches discovery off.

  Args:
    task: what the method is built for.
    options: settings of COMEN.
    forward: the forward pass of all three losses and of the diagnosis.
  """
  if options.true_domains and task.num_domains != task.num_sources:
    raise UserError(
      f"num_domains={task.num_domains}: comen.true_domains needs the number of"
      f" source domains, num_domains={task.num_sources}"
    )
  sdnorm = task.norm == "sdnorm"
  if not (sdnorm or options.protogr or options.protoccl):
    return deepall.create(task, deepall.Options(), forward)
  if options.style_from != "live" and len(task.model.style_layers) > 1:
    raise UserError(
      f"comen.style_from={options.style_from}: only the first convolution can"
      " be copied; give style_at=stem, or comen.style_from=live"
    )
  if task.views.same:  # The training view is the picture.
    options = options._replace(style_view="training")
  if options.style_view == "picture":
    picture = lambda batch: task.views.evaluate(batch.stored)
    forward = pictures.domains_of(picture, forward)
  graph = ProtoGR(
    task.num_classes,
    options.affinity_threshold,
    centre=options.prototype_form == "centred",
    shared=options.shared_attention,
  )
  make_stages = _stages_with_sdnorm if sdnorm else _stages_without_sdnorm
  return Method(
    # A stage of no epochs goes, but what it prepares stays.
    stages=tuple(
      s._replace(
        loss=partial(s.loss, forward=forward),
        diagnose=s.diagnose and partial(s.diagnose, forward=forward),
      )
      for s in make_stages(task, options, graph)
      if s.epochs or s.prepare
    ),
    init=partial(_init, task=task, graph=graph),
    describe=partial(_describe, graph=graph),
    domain_labels=options.true_domains,
  )


def _stages_with_sdnorm(
  task: Task, options: Options, graph: ProtoGR
) -> tuple[Stage, ...]:
  """Warm-up with equal p, discover with F_d learning, encode with F_d fixed."""
  warmup_epochs, discover_epochs, encode_epochs = _epochs(task)
  label = prepare.predicted_domains
  if options.true_domains:
    label = partial(prepare.true_domains, num_domains=task.num_domains)
  style_layers = [f"backbone/{layer}" for layer in task.model.style_layers]
  warmup = partial(warmup_loss, model=task.model, num_domains=task.num_domains)
  discover = partial(
    discover_loss,
    model=task.model.clone(detach_style=not options.style_gradient),
    options=options,
  )
  encode = partial(
    encode_loss,
    # F_d is fixed here: its probabilities are given, not learned.
    model=task.model.clone(detach_probs=True),
    graph=graph,
    options=options,
  )
  find = partial(
    prepare.prepare_discover,
    predictor=DomainPredictor(task.num_domains),
    style_layer=task.model.style_layers[0],
    options=options,
  )
  return (
    Stage("warmup", warmup_epochs, warmup, frozen=(_PREDICTOR, _PROTOGR)),
    Stage(
      "discover", discover_epochs, discover, prepare=find, frozen=(_PROTOGR,)
    ),
    Stage(
      "encode",
      encode_epochs,
      encode,
      prepare=partial(prepare.prepare_encode, label=label, discover=find),
      diagnose=partial(
        diagnose, model=task.model, graph=graph, options=options
      ),
      frozen=(
        _PREDICTOR,
        *(style_layers if options.freeze_style_layer else ()),
      ),
    ),
  )


def _stages_without_sdnorm(
  task: Task, options: Options, graph: ProtoGR
) -> tuple[Stage, ...]:
  """Cross-entropy, then encode with random (or true) domains."""
  warmup_epochs, discover_epochs, encode_epochs = _epochs(task)
  label = prepare.random_domains
  if options.true_domains:
    label = prepare.true_domains
  label = partial(label, num_domains=task.num_domains)
  return (
    Stage(
      "warmup",
      warmup_epochs + discover_epochs,
      partial(deepall.classification, model=task.model),
      frozen=(_PROTOGR,),
    ),
    Stage(
      "encode",
      encode_epochs,
      partial(encode_loss, model=task.model, graph=graph, options=options),
      prepare=partial(prepare.prepare_encode, label=label),
      diagnose=partial(
        diagnose, model=task.model, graph=graph, options=options
      ),
    ),
  )


def _epochs(task: Task) -> tuple[int, int, int]:
  """Epochs of warm-up, discover and encode."""
  warmup, discover, encode = split_epochs(task.epochs, task.stage_shares)
  return warmup, discover, encode


def _init(
  key: jax.Array, variables: dict[str, Any], *, task: Task, graph: ProtoGR
) -> tuple[dict[str, Any], Memory]:
  """Makes the parameters of ProtoGR and an empty memory."""
  shape = (task.num_domains, task.num_classes, task.feature_dim)
  nodes = jnp.zeros((shape[0] * shape[1], shape[2]))
  params = graph.init(key, nodes, jnp.ones(len(nodes), bool))["params"]
  domains = jnp.full(task.num_rows, -1, jnp.int32)
  memory = Memory(prototypes.Prototypes.zeros(*shape), domains)
  return {"protogr": params}, memory


def _describe(state: TrainState, *, graph: ProtoGR) -> dict[str, np.ndarray]:
  """Prototypes [M, K, D], whether each was seen, and their affinity (Eq. 8)."""
  memory = state.memory.prototypes
  nodes = memory.values.reshape(-1, memory.values.shape[-1])
  arrays = {
    "prototypes": memory.values,
    "prototypes_seen": memory.seen,
    "affinity": affinity(
      nodes, memory.seen.reshape(-1), graph.threshold, graph.centre
    ),
    "domains": state.memory.domains,
  }
  return {name: np.asarray(array) for name, array in arrays.items()}
