"""FACT: mixed amplitude spectra, and agreement with a slow teacher.

Xu, Zhang, Zhang, Wang and Tian, "A Fourier-based framework for domain
generalization", CVPR 2021.

x' is an image x with the amplitude spectrum of a random other image mixed into
its own (`data/spectrum.py`). With p = softmax(logits / T) of the network and q
that of the teacher:

  L = (CE(x) + CE(x')) / 2 + w r (KL(q(x) || p(x')) + KL(q(x') || p(x)))
  r = exp(-5 (1 - min(epoch / R, 1))^2), R epochs of growth

The teacher is a running mean of the network's parameters. After step n it is
m teacher + (1 - m) network with m = min(1 - 1 / (n + 1), decay). It normalises
with the statistics of the batch, and carries no gradient. The network itself is
evaluated.

The paper prints the two cross-entropies without the 1 / 2: we follow the
official code (MediaBrain-SJTU/FACT). It draws the partner from a random domain,
trains on the partner as well, and rounds pixels down to whole levels. Here the
partner is another image of the same batch, so that no domain is known, and
pixels are not rounded. R is a share of the epochs: 5 of 50.
"""

from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.data.spectrum import random_amplitude_mix
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import Fact as Options
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


def create(task: Task, options: Options) -> Method:
  """Makes FACT: one stage over all epochs."""
  loss = partial(fact_loss, task=task, options=options)
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: (
      {},
      {"teacher": jax.tree.map(jnp.copy, variables["params"])},
    ),
    describe=lambda state: {},
  )


def fact_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  task: Task,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropies, and the divergence from the teacher."""
  mix_key, drop_key, teacher_key = jax.random.split(key, 3)
  pixels = task.views.pixels(batch.image)
  mixed = random_amplitude_mix(mix_key, pixels, options.strength)
  both = batch.replace(
    image=jnp.concatenate([batch.image, task.views.normalise(mixed)])
  )
  outputs, batch_stats = forward(task.model, state, both, drop_key)
  original, other = jnp.split(outputs.logits, 2)
  loss_cls = cross_entropy(original, batch.label).mean()
  loss_mixed = cross_entropy(other, batch.label).mean()

  teacher = update_teacher(
    state.memory["teacher"], state.params["backbone"], state.step, options.decay
  )
  taught, _ = forward(
    task.model, state.replace(params={"backbone": teacher}), both, teacher_key
  )
  q_original, q_other = jnp.split(jax.lax.stop_gradient(taught.logits), 2)
  loss_teacher = (
    divergence(q_original, other, options.temperature).mean()
    + divergence(q_other, original, options.temperature).mean()
  )
  epoch = state.step // task.steps_per_epoch
  weight = options.weight * growth(epoch, options.ramp_share * task.epochs)
  loss = 0.5 * (loss_cls + loss_mixed) + weight * loss_teacher
  metrics = {
    "loss_cls": loss_cls,
    "loss_mixed": loss_mixed,
    "loss_teacher": loss_teacher,
  }
  return loss, (batch_stats, {"teacher": teacher}, metrics)


def update_teacher(
  teacher: Any, params: Any, step: jax.Array, decay: float
) -> Any:
  """The teacher at the start of step number `step`, which counts from 0.

  At step 0 it is the network itself. Until m reaches `decay`, it is the mean of
  the network's parameters at all steps so far.
  """
  n = step.astype(jnp.float32)
  m = jnp.minimum(1 - 1 / (n + 1), decay)
  return jax.tree.map(
    lambda t, p: m * t + (1 - m) * jax.lax.stop_gradient(p), teacher, params
  )


def divergence(
  teacher: jax.Array, network: jax.Array, temperature: float
) -> jax.Array:
  """KL(q || p) of softened predictions, unreduced.

  Args:
    teacher: [B, K], logits of q.
    network: [B, K], logits of p.
    temperature: divides the logits.

  Returns:
    [B].
  """
  chex.assert_equal_shape([teacher, network])
  log_q = jax.nn.log_softmax(teacher / temperature)
  log_p = jax.nn.log_softmax(network / temperature)
  return (jnp.exp(log_q) * (log_q - log_p)).sum(axis=-1)


def growth(epoch: jax.Array, length: float) -> jax.Array:
  """r: grows from exp(-5) in epoch 0 to 1 in epoch `length`, and stays."""
  if not length:
    return jnp.ones(())
  done = jnp.minimum(epoch.astype(jnp.float32) / length, 1.0)
  return jnp.exp(-5 * jnp.square(1 - done))
