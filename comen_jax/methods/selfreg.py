"""SelfReg: images of a class should have like features and logits.

Kim, Yoo, Park, Kim and Lee, "SelfReg: Self-supervised contrastive
regularization for domain generalization", ICCV 2021.

With z the logits, f the features, g = projection(f), P and Q two random
permutations of the batch within its classes, lambda from Beta(1/2, 1/2), and
MSE the mean over all elements:

  z3 = lambda z[P] + (1 - lambda) z[Q],  g3 = lambda g[P] + (1 - lambda) g[Q]
  L = CE + c (lambda (MSE(z, z[P]) + w MSE(f, g[P]))
              + (1 - lambda) (MSE(z, z3) + w MSE(f, g3))),  c = min(CE, 1)

c carries no gradient. Both sides of each MSE do, as in the official code
(dnap512/SelfReg), whose equations these are. Its curriculum over domains (IDCL)
needs domain labels, and its averaged weights (SWA) would be evaluated in place
of the network: both are left out.
"""

from functools import partial
from typing import Any

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import SelfReg as Options
from comen_jax.nn.batch_norm import BatchNorm
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


class Projection(nn.Module):
  """Three linear layers D -> 2D -> 2D -> D, each with a BatchNorm.

  Features of 2048 or more keep their size inside, as in the official code. Only
  training uses it, so its norms always take the statistics of the batch.
  """

  @nn.compact
  def __call__(self, features: jax.Array) -> jax.Array:
    """Maps features [B, D] to [B, D]."""
    D = features.shape[-1]
    hidden = 2 * D if D < 2048 else D
    x = features
    for i, size in enumerate((hidden, hidden, D), start=1):
      x = nn.Dense(size, name=f"dense{i}")(x)
      x = BatchNorm(name=f"norm{i}")(x, use_running_average=False)
      if i < 3:
        x = nn.relu(x)
    return x


def create(task: Task, options: Options) -> Method:
  """Makes SelfReg: one stage over all epochs."""
  features = jnp.zeros((1, task.feature_dim))
  loss = partial(selfreg_loss, model=task.model, options=options)
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: (
      {"projection": Projection().init(key, features)["params"]},
      {},
    ),
    describe=lambda state: {},
  )


def selfreg_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropy and its regularisation."""
  drop_key, first_key, second_key, mix_key = jax.random.split(key, 4)
  outputs, batch_stats = forward(model, state, batch, drop_key)
  projected = project(state.params["projection"], outputs.features)
  loss_cls = cross_entropy(outputs.logits, batch.label).mean()
  part = arcsine(mix_key)
  first = within_class(first_key, batch.label)
  second = within_class(second_key, batch.label)

  def distance(x: jax.Array, y: jax.Array) -> jax.Array:
    """lambda MSE(x, y[P]) + (1 - lambda) MSE(x, mixed y)."""
    mixed = part * y[first] + (1 - part) * y[second]
    near, far = jnp.square(x - y[first]), jnp.square(x - mixed)
    return part * near.mean() + (1 - part) * far.mean()

  loss_logits = distance(outputs.logits, outputs.logits)
  loss_features = distance(outputs.features, projected)
  weight = jnp.minimum(jax.lax.stop_gradient(loss_cls), 1.0)
  loss = loss_cls + weight * (
    loss_logits + options.feature_weight * loss_features
  )
  metrics = {
    "loss_cls": loss_cls,
    "loss_logits": loss_logits,
    "loss_features": loss_features,
  }
  return loss, (batch_stats, state.memory, metrics)


def project(params: Any, features: jax.Array) -> jax.Array:
  """Applies the projection to features [B, D] of a training batch."""
  projected, _ = Projection().apply(
    {"params": params}, features, mutable=["batch_stats"]
  )
  return projected


def arcsine(key: jax.Array) -> jax.Array:
  """Draws a number from Beta(1/2, 1/2), whose quantile function is simple.

  jax.random.beta takes seconds to compile.
  """
  return jnp.square(jnp.sin(jnp.pi / 2 * jax.random.uniform(key)))


def within_class(key: jax.Array, labels: jax.Array) -> jax.Array:
  """Draws a permutation of the batch that leaves every image in its class.

  Args:
    key: random key.
    labels: int [B], classes.

  Returns:
    int [B]: `labels[permutation]` equals `labels`.
  """
  chex.assert_rank(labels, 1)
  in_order = jnp.argsort(labels)
  shuffled = jnp.lexsort((jax.random.uniform(key, labels.shape), labels))
  # Both orders list the same classes one after the other.
  return jnp.zeros_like(in_order).at[in_order].set(shuffled)
