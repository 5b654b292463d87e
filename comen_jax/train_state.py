"""All that changes while training, in one pytree of one structure."""

import collections
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax


@flax.struct.dataclass
class TrainState:
  """Born whole at init; every stage reads and writes the same tree.

  Attributes:
    params: {"backbone": ..., and what the method adds}.
    batch_stats: the backbone's running statistics.
    memory: what the method remembers between steps, any pytree.
    opt_state: optax state.
    step: int32 [], training steps done.
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
    return cls(
      params=params,
      batch_stats=batch_stats,
      memory=memory,
      opt_state=tx.init(params),
      step=jnp.zeros((), jnp.int32),
    )


def sgd(
  learning_rate: float,
  drops: tuple[float, ...],
  factor: float,
  momentum: float,
  weight_decay: float,
  epochs: int,
  steps_per_epoch: int,
) -> optax.GradientTransformation:
  """SGD as torch's: weight decay joins the gradient before momentum.

  Args:
    learning_rate: at the start.
    drops: fractions of all epochs after which it is multiplied by `factor`.
    factor: of each drop.
    momentum: of SGD.
    weight_decay: on every parameter.
    epochs: of the whole run; the rate goes on through the stages.
    steps_per_epoch: steps.
  """
  boundaries = collections.defaultdict(lambda: 1.0)
  for drop in drops:  # In a short run two may fall on the same epoch.
    boundaries[max(1, round(drop * epochs)) * steps_per_epoch] *= factor
  constant = optax.piecewise_constant_schedule(learning_rate, boundaries)

  def schedule(count: jax.Array) -> jax.Array:
    # Optax mixes its int32 step count with floats.
    with jax.numpy_dtype_promotion("standard"):
      return constant(count)

  return optax.chain(
    optax.add_decayed_weights(weight_decay),
    optax.sgd(schedule, momentum=momentum),
  )
