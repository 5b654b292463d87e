"""SGD and its learning-rate schedule.

A new optimiser is a function here, its keys in the configs, and the line in
`experiment.build` that calls it.
"""

import collections

import jax
import optax


def step_schedule(
  learning_rate: float,
  drops: tuple[float, ...],
  factor: float,
  epochs: int,
  steps_per_epoch: int,
) -> optax.Schedule:
  """Multiplies the learning rate by `factor` at fractions of the whole run.

  The rate goes on through the stages of a method.

  Args:
    learning_rate: learning rate at the start.
    drops: fractions of `epochs`; the rate drops after each of them.
    factor: factor of each drop.
    epochs: number of epochs of the whole run.
    steps_per_epoch: number of training steps of an epoch.
  """
  boundaries = collections.defaultdict(lambda: 1.0)
  for drop in drops:  # In a short run two drops may fall on the same epoch.
    boundaries[max(1, round(drop * epochs)) * steps_per_epoch] *= factor
  constant = optax.piecewise_constant_schedule(learning_rate, boundaries)

  def schedule(count: jax.Array) -> jax.Array:
    # Optax mixes its int32 step count with floats.
    with jax.numpy_dtype_promotion("standard"):
      return constant(count)

  return schedule


def sgd(
  schedule: optax.Schedule, momentum: float, weight_decay: float
) -> optax.GradientTransformation:
  """SGD as in torch: weight decay is added to the gradient before momentum.

  Args:
    schedule: learning rate of each step.
    momentum: SGD momentum coefficient.
    weight_decay: weight decay coefficient, for every parameter.
  """
  return optax.chain(
    optax.add_decayed_weights(weight_decay),
    optax.sgd(schedule, momentum=momentum),
  )
