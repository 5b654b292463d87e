"""An adversary that tells domains from features, which learn to hide them.

DANN and MMLD share it: a discriminator, the ramp of its strength, and the
gradient that is turned around where it enters the features.

That gradient makes features grow without bound where nothing bounds them: on
digits without norms, at their learning rate, the loss of both methods became
NaN in the second epoch. So its norm is clipped, and a network that has no norms
and starts at random gets a tenth of it. Both are ours.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax import gradients
from comen_jax.methods.base import Task

_UNBOUNDED = 0.1  # Part of the reversed gradient without norms.


class Discriminator(nn.Module):
  """Maps features [B, D] to logits of the domains [B, M].

  Attributes:
    num_domains: number of domains M.
    width: width of its two hidden layers.
    dropout: probability that a hidden unit is dropped.
  """

  num_domains: int
  width: int
  dropout: float = 0.0

  @nn.compact
  def __call__(self, features: jax.Array) -> jax.Array:
    x = features
    for _ in range(2):
      x = nn.relu(nn.Dense(self.width)(x))
      x = nn.Dropout(self.dropout, deterministic=False)(x)
    return nn.Dense(self.num_domains)(x)


def bounded_weight(weight: float, task: Task) -> float:
  """The weight that a network can bear: a tenth where nothing bounds it."""
  bounded = task.norm != "none" or task.pretrained
  return weight * (1.0 if bounded else _UNBOUNDED)


def hide(features: jax.Array, weight: jax.Array, norm: float) -> jax.Array:
  """Returns the features; the gradient that comes back is reversed.

  Args:
    features: [B, D].
    weight: factor of the reversed gradient.
    norm: largest norm of the reversed gradient before it is weighted. What the
      discriminator learns from is not clipped.
  """
  # The gradient comes back through the outer function first.
  return gradients.clip(gradients.reverse(features, weight), norm)


def ramp(done: jax.Array) -> jax.Array:
  """a = 2 / (1 + exp(-10 t)) - 1: 0 at the start, nearly 1 at the end.

  Args:
    done: the share t of training that is done, from 0 to 1.
  """
  return 2 / (1 + jnp.exp(-10 * done)) - 1
