"""True domains of the source images, for methods that may read them.

Such a method declares `domain_labels=True`, so that every result says so. Its
batches are mixed, as all batches here: the domains of a batch are told apart by
one-hot weights w [B, M], and a domain that a batch lacks counts for nothing.
(DomainBed draws equally many images from each domain.)
"""

from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data.batches import Batch
from comen_jax.data.sources import Sources
from comen_jax.errors import UserError
from comen_jax.methods.base import Method, Report, Stage, Task
from comen_jax.steps import FeatureStep, Loss
from comen_jax.train_state import TrainState


@flax.struct.dataclass
class Memory:
  """The memory of a method that reads true domains.

  Attributes:
    domains: int32 [N], true source domain of every row; -1 until it is known,
      and for rows that are not of a source.
    own: what the method remembers besides, any pytree.
  """

  domains: jax.Array
  own: Any = ()


Init = Callable[[jax.Array, dict[str, Any]], tuple[dict[str, Any], Any]]


def _nothing(key: jax.Array, variables: dict[str, Any]) -> tuple[dict, tuple]:
  return {}, ()


def method(task: Task, loss: Loss, extra: Init = _nothing) -> Method:
  """Makes a method of one stage, whose loss reads the true domains.

  Args:
    task: what the method is built for.
    loss: loss of the stage; `state.memory` is a `Memory`.
    extra: (key, variables) -> (params, own): what the method adds to the
      parameters and to its memory.
  """

  def init(key: jax.Array, variables: Any) -> tuple[dict[str, Any], Memory]:
    params, own = extra(key, variables)
    return params, Memory(jnp.full(task.num_rows, -1, jnp.int32), own)

  return Method(
    stages=(Stage("train", task.epochs, loss, prepare=remember),),
    init=init,
    describe=lambda state: {},
    domain_labels=True,
  )


def check_sources(name: str, task: Task) -> None:
  """Raises UserError if there are no two domains to compare."""
  if task.num_sources < 2:
    raise UserError(
      f"method={name}: it compares source domains, but there is only"
      f" {task.num_sources}; choose a method without domain labels"
    )


def remember(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
) -> tuple[TrainState, Report]:
  """Writes the true domain of every source image into the memory."""
  rows = sources.rows
  domains = by_row(len(state.memory.domains), rows, sources.true_domains(rows))
  memory = state.memory.replace(domains=jnp.asarray(domains))
  return state.replace(memory=memory), Report({})


def by_row(count: int, rows: np.ndarray, domains: np.ndarray) -> np.ndarray:
  """Domains of `rows` -> int32 [count], -1 for all other rows."""
  known = np.full(count, -1, np.int32)
  known[rows] = domains
  return known


def weights(memory: Memory, batch: Batch, num_sources: int) -> jax.Array:
  """One-hot true domains of a batch, float32 [B, M]."""
  return jax.nn.one_hot(memory.domains[batch.row], num_sources)


def means(values: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Means of `values` over the images of each domain.

  Args:
    values: [B].
    w: [B, M], weights of the images in each domain, 0 or 1.

  Returns:
    The means [M], 0 for a domain without images, and bool [M]: whether the
    domain has images.
  """
  count = w.sum(axis=0)
  total = (w * values[:, None]).sum(axis=0)
  return total / jnp.maximum(count, 1.0), count > 0
