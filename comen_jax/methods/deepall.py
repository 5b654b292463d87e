"""DeepAll: cross-entropy on the pooled sources, one stage (paper, Table 1)."""

from functools import partial
from typing import Any

import jax

from comen_jax.losses import cross_entropy
from comen_jax.stage import Method, Stage, Task
from comen_jax.steps import forward


def create(task: Task) -> Method:
  """One stage over all epochs."""
  loss = partial(classification, model=task.model)
  return Method(
    stages=(Stage("train", sum(task.stage_epochs), loss),),
    init=lambda key: ({}, {}),
    describe=lambda state: {},
  )


def classification(
  params: Any, state: Any, batch: Any, key: jax.Array, *, model: Any
) -> tuple[jax.Array, tuple[Any, Any, dict[str, jax.Array]]]:
  """L_cls (Eq. 15); memory is handed on untouched."""
  outputs, batch_stats = forward(model, params, state, batch, key)
  loss = cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})
