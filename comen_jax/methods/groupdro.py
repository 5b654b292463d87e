"""GroupDRO: the worst source domain counts most. It reads domain labels.

Sagawa et al., "Distributionally Robust Neural Networks for Group Shifts", ICLR
2020. With L_m the mean cross-entropy of domain m in a batch,

  q_m <- q_m exp(eta L_m), normalised; loss = sum_m q_m L_m.

The weights q start equal and carry no gradient. The official code adds an
adjustment by group size and strong weight decay; we follow DomainBed, which has
neither. Its batches hold all domains. In ours a domain may be absent: it keeps
its weight, the others share what they had, and the loss is divided by the sum
of the weights that are present.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods import domain_labels
from comen_jax.methods.base import Method, Task
from comen_jax.methods.options.labelled import GroupDro
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


def create(task: Task, options: GroupDro) -> Method:
  """Makes GroupDRO."""
  domain_labels.check_sources("groupdro", task)
  equal = lambda: jnp.ones(task.num_sources) / task.num_sources
  return domain_labels.method(
    task,
    partial(worst_domains, model=task.model, rate=options.rate),
    lambda key, variables: ({}, {"weights": equal()}),
  )


def worst_domains(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  rate: float,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The weighted mean of the domains' losses; the memory gets new weights."""
  outputs, batch_stats = forward(model, state, batch, key)
  old = state.memory.own["weights"]
  w = domain_labels.weights(state.memory, batch, len(old))
  each = cross_entropy(outputs.logits, batch.label)
  losses, present = domain_labels.means(each, w)
  new = reweigh(old, jax.lax.stop_gradient(losses), present, rate)
  share = jnp.where(present, new, 0.0)
  loss = (share * losses).sum() / share.sum()
  memory = state.memory.replace(own={"weights": new})
  metrics = {"loss_cls": each.mean(), "largest_weight": new.max()}
  return loss, (batch_stats, memory, metrics)


def reweigh(
  q: jax.Array, losses: jax.Array, present: jax.Array, rate: float
) -> jax.Array:
  """Raises the weights of domains with a large loss; their sum stays 1.

  Args:
    q: [M], weights of the domains, which sum to 1.
    losses: [M], losses of the domains in a batch.
    present: bool [M]; a domain that is absent keeps its weight.
    rate: eta, how fast weights follow the losses.
  """
  old = jnp.where(present, q, 0.0)
  # The largest loss is subtracted: only ratios matter, and exp stays finite.
  largest = jnp.where(present, losses, -jnp.inf).max()
  raised = old * jnp.exp(rate * jnp.where(present, losses - largest, 0.0))
  return jnp.where(present, raised * old.sum() / raised.sum(), q)
