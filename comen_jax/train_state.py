"""All that changes while training, in one pytree of one structure."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax


@flax.struct.dataclass
class TrainState:
  """The state of a run. Every stage reads and writes the same tree.

  Attributes:
    params: {"backbone": ..., and the parameters that the method adds}.
    batch_stats: running statistics of the backbone.
    memory: what the method remembers between steps, any pytree.
    opt_state: optax state.
    step: int32 [], number of training steps done.
  """

  params: Any
  batch_stats: Any
  memory: Any
  opt_state: Any
  step: jax.Array

  @classmethod
  def create(
    cls,
    params: Any,
    batch_stats: Any,
    memory: Any,
    tx: optax.GradientTransformation,
  ) -> "TrainState":
    """Makes the first state, with the optimiser's first state inside."""
    return cls(
      params=params,
      batch_stats=batch_stats,
      memory=memory,
      opt_state=tx.init(params),
      step=jnp.zeros((), jnp.int32),
    )
