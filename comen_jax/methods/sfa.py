"""SFA: noise on the features while training, in our reading.

Li, Li, Zhang, Zhang and Gong, "A simple feature augmentation for domain
generalization", ICCV 2021. No official code is published, and we know neither
its settings nor its loss for certain. So rows are named "our reading".

With z [B, D] the features, the head sees in training

- SFA-S: a * z + b, element by element, a ~ N(1, s1^2), b ~ N(0, s2^2);
- SFA-A: z + s b, b ~ N(0, Sigma_y), with Sigma_y the covariance of the
  features of class y over all sources, estimated as training goes on.

The loss is the cross-entropy of the noisy features. Evaluation has no noise.
The deviations are ours: with s = 1 the digits CNN, which has no norms, diverges
on mini digits within four epochs; with s = 0.3 it learns.

Sigma_y of SFA-A is the covariance of the last `window` features of class y,
those of the batch among them, without gradient. A sum of them, centred and each
times an independent normal number, has exactly this covariance when divided by
the root of their number, so no D x D matrix is made or factorised. The paper is
said to keep a running estimate; features from long ago belong to a network that
is no longer there.
"""

from functools import partial
from typing import Any

import chex
import flax.struct
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import SfaA, SfaS
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


@flax.struct.dataclass
class Window:
  """The last R features of every class.

  Attributes:
    features: float32 [K, R, D], of class k in slots 0 to R - 1.
    count: int32 [K], number of features that were ever put in.
  """

  features: jax.Array
  count: jax.Array


def create_s(task: Task, options: SfaS) -> Method:
  """Makes SFA-S: one stage over all epochs."""
  loss = partial(sfa_s_loss, model=task.model, options=options)
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: ({}, {}),
    describe=lambda state: {},
  )


def create_a(task: Task, options: SfaA) -> Method:
  """Makes SFA-A: one stage over all epochs; its memory is a `Window`."""
  loss = partial(sfa_a_loss, model=task.model, options=options)
  shape = (task.num_classes, options.window, task.feature_dim)
  empty = lambda: Window(jnp.zeros(shape), jnp.zeros(shape[:1], jnp.int32))
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: ({}, empty()),
    describe=lambda state: {},
  )


def sfa_s_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  options: SfaS,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropy of features with noise of fixed size."""
  drop_key, scale_key, shift_key = jax.random.split(key, 3)

  def tap(name: str, x: jax.Array) -> jax.Array:
    if name != "features":
      return x
    scale = 1 + options.scale_deviation * jax.random.normal(scale_key, x.shape)
    return scale * x + options.shift_deviation * jax.random.normal(
      shift_key, x.shape
    )

  outputs, batch_stats = forward(model, state, batch, drop_key, tap=tap)
  loss = cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})


def sfa_a_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  options: SfaA,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropy of features with noise of their class's covariance."""
  drop_key, noise_key = jax.random.split(key)
  found = {}

  def tap(name: str, x: jax.Array) -> jax.Array:
    if name != "features":
      return x
    window = put(state.memory, jax.lax.stop_gradient(x), batch.label)
    found["window"] = window
    noise = draw(noise_key, window, batch.label)
    return x + options.strength * noise

  outputs, batch_stats = forward(model, state, batch, drop_key, tap=tap)
  loss = cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, found["window"], {})


def put(window: Window, features: jax.Array, labels: jax.Array) -> Window:
  """Puts features [B, D] of classes [B] into the window, the oldest go.

  If a batch has more than R of a class, its last R stay.
  """
  K, R, _ = window.features.shape
  own = jax.nn.one_hot(labels, K, dtype=jnp.int32)
  number = (jnp.cumsum(own, axis=0) * own).sum(axis=1) - 1  # Within its class.
  total = own.sum(axis=0)
  slot = (window.count[labels] + number) % R
  # A slot beyond the last writes nothing, so every slot is written once.
  slot = jnp.where(number >= total[labels] - R, slot, R)
  return Window(
    window.features.at[labels, slot].set(features, mode="drop"),
    window.count + total,
  )


def draw(key: jax.Array, window: Window, labels: jax.Array) -> jax.Array:
  """Draws noise of the covariance of each image's class.

  Args:
    key: random key.
    window: features whose covariance the noise has (biased: divided by n).
    labels: int [B], true classes.

  Returns:
    [B, D]; 0 for a class with one feature.
  """
  chex.assert_rank(window.features, 3)
  K, R, D = window.features.shape
  count = jnp.minimum(window.count, R)
  filled = jnp.arange(R)[None, :] < count[:, None]  # [K, R]
  n = jnp.maximum(count, 1).astype(jnp.float32)[:, None, None]
  kept = jnp.where(filled[..., None], window.features, 0.0)
  mean = kept.sum(axis=1, keepdims=True) / n
  centred = jnp.where(filled[..., None], kept - mean, 0.0) / jnp.sqrt(n)
  weights = jax.random.normal(key, (len(labels), R))
  own = jax.nn.one_hot(labels, K)
  # One product for all classes: a weight counts in its image's class only.
  weights = (own[:, :, None] * weights[:, None, :]).reshape(-1, K * R)
  return jnp.matmul(
    weights, centred.reshape(K * R, D), precision=jax.lax.Precision.HIGHEST
  )
