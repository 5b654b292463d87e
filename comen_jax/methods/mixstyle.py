"""MixStyle: feature maps get styles between those of two images.

Zhou, Yang, Qiao and Xiang, "Domain generalization with MixStyle", ICLR 2021.

At each chosen point of the network, with probability p for the whole batch, a
feature map x with mean mu and deviation sig (per image and channel) becomes

  (x - mu) / sig * (l sig + (1 - l) sig') + l mu + (1 - l) mu'

where mu', sig' are those of a partner in the batch, and l ~ Beta(a, a) for each
image. No gradient flows through the four statistics. Labels stay. Every point
draws anew. The loss is the cross-entropy; evaluation mixes nothing.

`mixstyle` takes a random permutation of the batch as partners.
`mixstyle_crossdomain` takes a random image of another domain, so it reads
domain labels. The official code (KaiyangZhou/Dassl.pytorch) builds its batches
of two domains and swaps the halves. Here batches are mixed, and two images may
have the same partner. An image that finds no other domain in its batch keeps
its style.

The points: after every stage but the last, as in the paper for PACS. The
author's digits settings are not published in full; a copy by others mixes after
the first three poolings, which is the same rule.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods import domain_labels
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import MixStyle as Options
from comen_jax.nn.backbone import Backbone, Tap
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

# (key, state, batch) -> int [B], the partner of each image.
Partners = Callable[[jax.Array, TrainState, Batch], jax.Array]
_EPSILON = 1e-6  # Added to a variance, as in the official code.


def create(task: Task, options: Options) -> Method:
  """Makes MixStyle with random partners: one stage over all epochs."""
  loss = partial(
    mixstyle_loss, model=task.model, options=options, partners=random_partners
  )
  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=lambda key, variables: ({}, {}),
    describe=lambda state: {},
  )


def create_crossdomain(task: Task, options: Options) -> Method:
  """Makes MixStyle with partners of another domain."""
  domain_labels.check_sources("mixstyle_crossdomain", task)
  loss = partial(
    mixstyle_loss, model=task.model, options=options, partners=other_domains
  )
  return domain_labels.method(task, loss)


def mixstyle_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  options: Options,
  partners: Partners,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropy of images whose feature maps are mixed."""
  drop_key, mix_key = jax.random.split(key)
  tap = make_tap(
    mix_key,
    len(batch.label),
    model.points,
    options,
    partial(partners, state=state, batch=batch),
  )
  outputs, batch_stats = forward(model, state, batch, drop_key, tap=tap)
  loss = cross_entropy(outputs.logits, batch.label).mean()
  return loss, (batch_stats, state.memory, {})


def make_tap(
  key: jax.Array,
  size: int,
  points: tuple[str, ...],
  options: Options,
  partners: Callable[[jax.Array], jax.Array],
) -> Tap:
  """Makes the tap that mixes styles.

  Args:
    key: random key; each point makes its own of it.
    size: number of images B.
    points: points of the backbone.
    options: where and how much to mix.
    partners: key -> int [B], the partner of each image.
  """
  layers = options.layers or every_layer_but_the_last(points)

  def tap(name: str, x: jax.Array) -> jax.Array:
    if name not in layers:
      return x
    own = jax.random.fold_in(key, points.index(name))
    coin_key, part_key, partner_key = jax.random.split(own, 3)
    part = jax.random.beta(part_key, options.alpha, options.alpha, (size,))
    mixed = mix_styles(x, part, partners(partner_key))
    coin = jax.random.bernoulli(coin_key, options.probability)
    return jnp.where(coin, mixed, x)

  return tap


def mix_styles(x: jax.Array, part: jax.Array, partner: jax.Array) -> jax.Array:
  """Mixes the style of each map with that of its partner.

  Args:
    x: [B, H, W, C], feature maps.
    part: [B], l, the part of its own style that a map keeps; 1 keeps the map.
    partner: int [B], number of the partner.

  Returns:
    [B, H, W, C], in the dtype of x.
  """
  chex.assert_rank(x, 4)
  chex.assert_shape([part, partner], x.shape[:1])
  z = x.astype(jnp.float32)
  mean, deviation = jax.lax.stop_gradient(style(z))
  part = part[:, None, None, None]
  new_mean = part * mean + (1 - part) * mean[partner]
  new_deviation = part * deviation + (1 - part) * deviation[partner]
  return ((z - mean) / deviation * new_deviation + new_mean).astype(x.dtype)


def style(z: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Mean and deviation [B, 1, 1, C] of maps [B, H, W, C].

  The variance is torch's, with n - 1 in its denominator; that of a map of one
  position is 0.
  """
  count = z.shape[1] * z.shape[2]
  mean = z.mean(axis=(1, 2), keepdims=True)
  square = jnp.square(z - mean).sum(axis=(1, 2), keepdims=True)
  return mean, jnp.sqrt(square / max(count - 1, 1) + _EPSILON)


def every_layer_but_the_last(points: tuple[str, ...]) -> tuple[str, ...]:
  """Names of the points "layer1", "layer2", ..., without the last of them."""
  return tuple(name for name in points if name.startswith("layer"))[:-1]


def random_partners(
  key: jax.Array, state: TrainState, batch: Batch
) -> jax.Array:
  """A random permutation of the batch, int [B]."""
  return jax.random.permutation(key, len(batch.label))


def other_domains(key: jax.Array, state: TrainState, batch: Batch) -> jax.Array:
  """A random image of another true domain, else the image itself, int [B]."""
  domains = state.memory.domains[batch.row]
  other = domains[:, None] != domains[None, :]
  # The largest of independent Gumbel draws is a uniform choice.
  noise = jax.random.gumbel(key, other.shape)
  partner = jnp.where(other, noise, -jnp.inf).argmax(axis=1)
  return jnp.where(other.any(axis=1), partner, jnp.arange(len(domains)))
