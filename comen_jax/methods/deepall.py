"""DeepAll: cross-entropy on the pooled sources, one stage (paper, Table 1)."""

from functools import partial
from typing import Any, NamedTuple

import jax

from comen_jax import steps
from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Forward, Method, Stage, Task
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics
from comen_jax.train_state import TrainState


class Options(NamedTuple):
  """DeepAll has no options."""


def create(
  task: Task, options: Options, forward: Forward = steps.forward
) -> Method:
  """Makes DeepAll: one stage over all epochs."""
  loss = partial(classification, model=task.model, forward=forward)
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: ({}, {}),
    describe=lambda state: {},
  )


def classification(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  forward: Forward = steps.forward,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """L_cls (Eq. 15). The memory stays as it is."""
  outputs, batch_stats = forward(model, state, batch, key)
  loss = cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})
