"""RSC: mutes the parts of the last feature map that decide the class.

Huang, Wang, Xing and Huang, "Self-challenging improves cross-domain
generalization", ECCV 2020.

With x [B, H, W, C] the last feature map, y the class of an image and g the mean
over positions of the gradient of logit y with respect to x, a step mutes either

- positions: the third of largest sum_c g_c x_c, or
- channels: the 1 / 3.2 of largest g_c,

whichever a fair coin says. What is as large as the first that would stay,
stays. Only images whose probability of y falls most are muted: those strictly
above the image of rank q B among the drops. The loss is the cross-entropy of
the muted maps; the masks carry no gradient.

The head is linear, so g needs no differentiation: after an average over
positions g_c is W[c, y] / (H W), and after flattening it is the mean of
W[(h, w, c), y] over h, w.

The official code (DeLightCMU/RSC, which its authors changed after the paper) is
followed, not the paper, which mutes two thirds of the features of a third of
the images throughout. In the code q grows from 0.3 by 0.2 every ten epochs of
twenty; here it does so after half of the epochs. The code also adds a mirrored
copy of every image to the batch, which digits forbid and other methods do not
get: `mirror` switches it on.
"""

import math
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import Rsc as Options
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

_LEAST_DROP = 1e-4  # A smaller fall of the probability counts as none.


def create(task: Task, options: Options) -> Method:
  """Makes RSC: one stage over all epochs."""
  loss = partial(rsc_loss, task=task, options=options)
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: ({}, {}),
    describe=lambda state: {},
  )


def rsc_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  task: Task,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropy of muted feature maps."""
  drop_key, coin_key = jax.random.split(key)
  if options.mirror:
    batch = batch.replace(
      image=jnp.concatenate([batch.image, batch.image[:, :, ::-1]]),
      label=jnp.tile(batch.label, 2),
    )
  point = task.model.points[-2]  # The last feature map.
  found = {}

  def tap(name: str, x: jax.Array) -> jax.Array:
    if name != point:
      return x
    logits = partial(_logits, state=state, model=task.model, point=point)
    mask = draw_mask(
      coin_key,
      x.astype(jnp.float32),
      channel_scores(
        state.params["backbone"][task.model.head]["kernel"], batch.label, x
      ),
      options,
    )
    fall = _probability(logits(x), batch.label) - _probability(
      logits(x * mask.astype(x.dtype)), batch.label
    )
    chosen = most_changed(fall, image_share(state.step, task, options))
    found["muted_images"] = chosen.astype(jnp.float32).mean()
    mask = jnp.where(chosen[:, None, None, None], mask, 1.0)
    return x * jax.lax.stop_gradient(mask).astype(x.dtype)

  outputs, batch_stats = forward(task.model, state, batch, drop_key, tap=tap)
  loss = cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, found)


def channel_scores(
  kernel: jax.Array, labels: jax.Array, x: jax.Array
) -> jax.Array:
  """Mean over positions of the gradient of an image's own logit.

  Args:
    kernel: [C, K] of a head that sees averages over positions, or [H W C, K] of
      a head that sees the flattened map.
    labels: int [B], true classes.
    x: [B, H, W, C], the map; only its shape is read.

  Returns:
    [B, C].
  """
  _, H, W, C = x.shape
  own = kernel.T[labels]
  if kernel.shape[0] == C and H * W > 1:
    return own / (H * W)
  chex.assert_axis_dimension(kernel, 0, H * W * C)
  return own.reshape(-1, H * W, C).mean(axis=1)


def draw_mask(
  key: jax.Array, x: jax.Array, scores: jax.Array, options: Options
) -> jax.Array:
  """The mask of positions or that of channels, [B, H, W, C] of 0 and 1."""
  B, H, W, _ = x.shape
  by_position = jnp.einsum("bhwc,bc->bhw", x, scores).reshape(B, H * W)
  positions = keep_small(by_position, options.position_share)
  channels = keep_small(scores, options.channel_share)
  coin = jax.random.bernoulli(key, options.position_probability)
  return jnp.where(
    coin, positions.reshape(B, H, W, 1), channels[:, None, None, :]
  )


def keep_small(scores: jax.Array, share: float) -> jax.Array:
  """0 for the largest share of the scores in each row, 1 for the others.

  Args:
    scores: [B, n].
    share: ceil(share n) are muted, never all; fewer if some are as large as the
      first that stays.

  Returns:
    [B, n].
  """
  count = min(math.ceil(share * scores.shape[1]), scores.shape[1] - 1)
  first_kept = -jnp.sort(-scores, axis=1)[:, count]
  return (scores <= first_kept[:, None]).astype(jnp.float32)


def most_changed(fall: jax.Array, share: jax.Array) -> jax.Array:
  """Which images are muted: those whose probability falls most.

  Args:
    fall: [B], fall of the probability of the true class.
    share: share of the images, []; the image of this rank and those that are
      not above it are left as they are.

  Returns:
    bool [B].
  """
  fall = jnp.maximum(fall - _LEAST_DROP, 0.0)
  rank = jnp.round(share * len(fall)).astype(jnp.int32)
  bound = -jnp.sort(-fall)[jnp.minimum(rank, len(fall) - 1)]
  return fall > bound


def image_share(step: jax.Array, task: Task, options: Options) -> jax.Array:
  """q: larger in the second half of the epochs."""
  second = 2 * (step // task.steps_per_epoch) >= task.epochs
  return options.image_share + options.image_growth * second.astype(jnp.float32)


def _logits(
  x: jax.Array, *, state: TrainState, model: Backbone, point: str
) -> jax.Array:
  """Logits [B, K] of the last feature maps."""
  variables = {
    "params": state.params["backbone"],
    "batch_stats": state.batch_stats,
  }
  return model.apply(variables, x, train=False, enter=point).logits


def _probability(logits: jax.Array, labels: jax.Array) -> jax.Array:
  """Probability of the true class, [B]."""
  return jnp.exp(-cross_entropy(logits, labels))
