"""RandConv: random convolutions of the images, and agreement among them.

Xu, Liu, Yang, Raffel and Niethammer, "Robust and generalizable visual
representation learning via random convolutions", ICLR 2021.

Three random convolutions x_0, x_1, x_2 of a batch (`data/random_conv.py`) have
predictions p_0, p_1, p_2 with mean m:

  L = CE(x_0, y) + w (KL(p_0 || m) + KL(p_1 || m) + KL(p_2 || m)) / 3

The gradient flows through all of them. Each draw passes the network on its own,
as in the official code (wildphoton/RandConv), so that a BatchNorm sees one
convolution at a time. With the statistics of all three together the network did
not learn: its predictions became equal.

The official code convolves x_1 and x_2 twice: it draws them from x_0. We follow
the paper, where all three come from x. The code also validates on convolved
images; here evaluation is the same for all methods.
"""

from functools import partial
from typing import Any

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.data.random_conv import random_convolution
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import RandConv as Options
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

_DRAWS = 3
_SMALLEST = 1e-7  # Of a mean prediction, as in the official code.


def create(task: Task, options: Options) -> Method:
  """Makes RandConv: one stage over all epochs."""
  loss = partial(randconv_loss, model=task.model, options=options)
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: ({}, {}),
    describe=lambda state: {},
  )


def randconv_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropy of one draw and the disagreement of three."""
  drop_key, *draw_keys = jax.random.split(key, 1 + _DRAWS)
  draws = [
    random_convolution(k, batch.image, mix=options.mix, keep=options.keep)
    for k in draw_keys
  ]

  def one_pass(batch_stats: Any, draw: tuple[jax.Array, jax.Array]):
    images, dropout_key = draw
    outputs, batch_stats = forward(
      model,
      state.replace(batch_stats=batch_stats),
      batch.replace(image=images),
      dropout_key,
    )
    return batch_stats, outputs.logits

  batch_stats, logits = jax.lax.scan(
    one_pass,
    state.batch_stats,
    (jnp.stack(draws), jax.random.split(drop_key, _DRAWS)),
  )
  loss_cls = cross_entropy(logits[0], batch.label).mean()
  loss_agree = disagreement(logits).mean()
  loss = loss_cls + options.weight * loss_agree
  metrics = {"loss_cls": loss_cls, "loss_agree": loss_agree}
  return loss, (batch_stats, state.memory, metrics)


def disagreement(logits: jax.Array) -> jax.Array:
  """Mean divergence of several predictions from their mean.

  Args:
    logits: [V, B, K], of V views of each image.

  Returns:
    [B], the mean over the views of KL(p_v || mean p).
  """
  chex.assert_rank(logits, 3)
  log_p = jax.nn.log_softmax(logits)
  p = jnp.exp(log_p)
  log_mean = jnp.log(jnp.clip(p.mean(axis=0), _SMALLEST, 1.0))
  return (p * (log_p - log_mean[None])).sum(axis=-1).mean(axis=0)
