"""EISNet: a jigsaw puzzle, and triplets against a slow teacher.

Wang, Yu, Li, Fu and Heng, "Learning from extrinsic and intrinsic supervisions
for domain generalization", ECCV 2020.

The network sees JiGen's puzzle of an image, the teacher the image itself. Both
map features to embeddings of unit length, q and k. A queue holds the last k
with their classes, those of this batch included. For each pair i < j of a class
in the batch, with distances d_p = |q_i - k_j|^2 and d_n = |q_i - k_n|^2, the
negatives are the n of other classes in the queue with d_p < d_n < d_p + margin:

  L_t = mean over all triplets (i, j, n) of d_p - d_n + margin
  L = CE(class) + w CE(order) + v L_t,  v = (1 + epoch / epochs) / 2

The teacher is m teacher + (1 - m) network after each step. It carries no
gradient.

The official code (emma-sjwang/EISNet) draws at most 256 of a pair's negatives,
with replacement. Here each pair counts with min(256, its number of negatives)
and the mean over all its negatives: the expectation of that draw. The paper
speaks of the K hardest negatives: we follow the code. With `augment="jigen"`
(`data/recipes.py`) the whole image also loses its colour with probability 0.1,
so a tile is grey with probability 0.19 there.

The official m is constant, 0.999, and the network starts from ImageNet. There
the teacher normalises with the ImageNet statistics that it started with; here
with the network's running statistics. From a random start both fail: after 210
steps the teacher would still be 81 % the random network, and the statistics of
the network do not fit weights that lag behind. So if the backbone is not
pretrained, m is FACT's, min(1 - 1 / (n + 1), 0.999) after step n, and the
teacher normalises with the statistics of the batch, as FACT's does. This is
ours.
"""

from functools import partial
from typing import Any

import chex
import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.fact import update_teacher
from comen_jax.methods.jigen import Puzzle, make_puzzle, order_head, shuffle
from comen_jax.methods.options.label_free import EISNet as Options
from comen_jax.steps import Metrics, forward, predict
from comen_jax.train_state import TrainState

_HIGHEST = jax.lax.Precision.HIGHEST


@flax.struct.dataclass
class Memory:
  """What EISNet remembers between steps.

  Attributes:
    teacher: parameters of the backbone and of the embedding.
    queue: [Q, E], the teacher's last embeddings, the newest first.
    labels: int32 [Q], their classes; -1 marks an empty place.
  """

  teacher: Any
  queue: jax.Array
  labels: jax.Array


def create(task: Task, options: Options) -> Method:
  """Makes EISNet: one stage over all epochs."""
  puzzle = make_puzzle(task.image_size, options)
  loss = partial(eisnet_loss, task=task, puzzle=puzzle, options=options)

  def init(key: jax.Array, variables: dict[str, Any]):
    order_key, embed_key = jax.random.split(key)
    features = jnp.zeros((1, task.feature_dim))
    embedding = nn.Dense(options.embedding)
    params = {
      "jigsaw": order_head(puzzle).init(order_key, features)["params"],
      "embedding": embedding.init(embed_key, features)["params"],
    }
    learnt = {
      "backbone": variables["params"],
      "embedding": params["embedding"],
    }
    memory = Memory(
      teacher=jax.tree.map(jnp.copy, learnt),
      queue=jnp.zeros((options.queue, options.embedding)),
      labels=jnp.full((options.queue,), -1, jnp.int32),
    )
    return params, memory

  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=init,
    describe=lambda state: {},
  )


def eisnet_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  task: Task,
  puzzle: Puzzle,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropies of class and order, and the triplets."""
  drop_key, puzzle_key, teacher_key = jax.random.split(key, 3)
  images, order = shuffle(puzzle_key, batch.image, puzzle, task.views)
  outputs, batch_stats = forward(
    task.model, state, batch.replace(image=images), drop_key
  )
  order_logits = order_head(puzzle).apply(
    {"params": state.params["jigsaw"]}, outputs.features
  )
  loss_cls = cross_entropy(outputs.logits, batch.label).mean()
  loss_order = cross_entropy(order_logits, order).mean()

  teacher = follow(
    state.memory.teacher,
    {name: state.params[name] for name in state.memory.teacher},
    state.step,
    decay=options.decay,
    pretrained=task.pretrained,
  )
  taught_by = state.replace(params=teacher)
  if task.pretrained:
    taught = predict(task.model, taught_by, batch.image)
  else:
    taught, _ = forward(task.model, taught_by, batch, teacher_key)
  q = embed(state.params["embedding"], outputs.features)
  k = jax.lax.stop_gradient(embed(teacher["embedding"], taught.features))
  memory = Memory(
    teacher, *enqueue(state.memory.queue, state.memory.labels, k, batch.label)
  )
  total, count = triplets(
    q, k, batch.label, memory.queue, memory.labels, options
  )
  loss_triplet = total / jnp.maximum(count, 1.0)
  epoch = (state.step // task.steps_per_epoch).astype(jnp.float32)
  weight = options.triplet_weight * (1 + epoch / task.epochs) / 2
  loss = loss_cls + options.order_weight * loss_order + weight * loss_triplet
  metrics = {
    "loss_cls": loss_cls,
    "loss_order": loss_order,
    "loss_triplet": loss_triplet,
    "triplets": count,
  }
  return loss, (batch_stats, memory, metrics)


def follow(
  teacher: Any,
  params: Any,
  step: jax.Array,
  *,
  decay: float,
  pretrained: bool,
) -> Any:
  """The teacher at the start of step number `step`, which counts from 0.

  Args:
    teacher: its parameters at the start of the step before.
    params: the network's parameters.
    step: number of the step.
    decay: m; the largest m if the network is not pretrained.
    pretrained: whether the network started from pretrained weights.
  """
  if not pretrained:
    return update_teacher(teacher, params, step, decay)
  return jax.tree.map(
    lambda t, p: decay * t + (1 - decay) * jax.lax.stop_gradient(p),
    teacher,
    params,
  )


def embed(params: Any, features: jax.Array) -> jax.Array:
  """Maps features [B, D] to embeddings [B, E] of unit length."""
  x = nn.Dense(params["bias"].shape[0]).apply({"params": params}, features)
  square = jnp.square(x).sum(axis=-1, keepdims=True)
  return x / jnp.sqrt(jnp.maximum(square, 1e-12))


def enqueue(
  queue: jax.Array, labels: jax.Array, new: jax.Array, new_labels: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Puts embeddings [B, E] before the queue [Q, E]; the oldest fall out."""
  return (
    jnp.concatenate([new, queue])[: len(queue)],
    jnp.concatenate([new_labels, labels])[: len(labels)],
  )


def triplets(
  q: jax.Array,
  k: jax.Array,
  label: jax.Array,
  queue: jax.Array,
  queue_label: jax.Array,
  options: Options,
) -> tuple[jax.Array, jax.Array]:
  """The sum of d_p - d_n + margin over all triplets, and their number.

  Args:
    q: [B, E], the network's embeddings.
    k: [B, E], the teacher's embeddings.
    label: [B], their classes.
    queue: [Q, E], embeddings among which the negatives are.
    queue_label: [Q], their classes; -1 marks an empty place.
    options: margin, and the largest number of negatives of a pair.
  """
  chex.assert_equal_shape([q, k])
  other = (queue_label >= 0)[None] & (queue_label[None] != label[:, None])
  pair = jnp.triu(label[:, None] == label[None], 1)

  def of_anchor(anchor: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    near, far, pair, other = anchor  # [B], [Q], [B], [Q]
    excess = near[:, None] - far[None] + options.margin  # [B, Q]
    chosen = (excess > 0) & (excess < options.margin)
    chosen &= pair[:, None] & other[None]
    count = chosen.sum(axis=1).astype(jnp.float32)  # [B]
    total = jnp.where(chosen, excess, 0.0).sum(axis=1)
    weight = jnp.minimum(count, options.negatives)
    return (weight * total / jnp.maximum(count, 1.0)).sum(), weight.sum()

  # All anchors at once would take an array of [B, B, Q].
  near, far = _squared_distances(q, k), _squared_distances(q, queue)
  total, count = jax.lax.map(of_anchor, (near, far, pair, other), batch_size=4)
  return total.sum(), count.sum()


def _squared_distances(a: jax.Array, b: jax.Array) -> jax.Array:
  """|a_i - b_j|^2 of embeddings [A, E] and [B, E] of unit length, [A, B]."""
  return 2 - 2 * jnp.dot(a, b.T, precision=_HIGHEST)
