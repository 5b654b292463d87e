"""SagNet: a network that cannot rely on style.

Nam, Lee, Park, Yoon and Yoo, "Reducing domain gap by reducing style bias",
CVPR 2021.

The backbone is split at a feature map. Each image's channels of the map have a
mean and a variance, the style; the normalised map is the content.

- The content path goes on with the content of each image and a random style
  between its own and that of another image (style randomisation, SR).
- The style path, a second network of the layers after the split, goes on with
  the style of each image and the content of another (content randomisation,
  CR). It learns the class from the style.
- An adversary makes the style say nothing of the class.

  L_c = CE(content path), trains the backbone
  L_s = CE(style path), trains the style path
  L_adv = w mean over images and classes of -log(p_style + 1e-5), trains the
    scale and bias of the norms before the split; its gradient is clipped

As in the official code (hyeonseobnam/sagnet), SR mixes variances, not
deviations, and lets the gradient through the style; CR keeps no gradient of the
content; both paths drop half of their features. There the adversary acts on
the style path after its update, here before it. The code draws equally many
images of each domain; here batches are the same for all methods, so no domain
is known. The published version of DomainBed randomises the feature vector
instead of a map, and its adversary trains all layers: we do not follow it.
"""

from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp

from comen_jax import gradients
from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods.base import Method, Stage, Task
from comen_jax.methods.options.label_free import SagNet as Options
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

_SPLIT = "layer2"  # The content path starts after this point of the backbone.
_EPSILON = 1e-5


def create(task: Task, options: Options) -> Method:
  """Makes SagNet: one stage over all epochs."""
  after = layers_after(task.model, _SPLIT, task.image_size)
  loss = partial(sagnet_loss, model=task.model, after=after, options=options)

  def init(key: jax.Array, variables: dict[str, Any]):
    # The style path starts as the content path does.
    layers = {name: variables["params"][name] for name in after}
    return {"style": jax.tree.map(jnp.copy, layers)}, {}

  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=init,
    describe=lambda state: {},
  )


def layers_after(
  model: Backbone, point: str, image_size: int
) -> tuple[str, ...]:
  """Names of the backbone's layers after a point, its head among them."""
  maps = {}

  def tap(name: str, x: jax.Array) -> jax.Array:
    maps[name] = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return x

  make = lambda image, **how: model.init(
    jax.random.key(0), image, train=False, **how
  )
  image = jax.ShapeDtypeStruct((1, image_size, image_size, 3), jnp.float32)
  jax.eval_shape(partial(make, tap=tap), image)
  after = jax.eval_shape(partial(make, enter=point), maps[point])
  return tuple(after["params"])


def sagnet_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  after: tuple[str, ...],
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """L_c + L_s + L_adv. Stopped gradients say which loss trains what."""
  net_key, sr_key, cr_key, content_key, style_key = jax.random.split(key, 5)
  seen = {}

  def content_path(name: str, x: jax.Array) -> jax.Array:
    if name == _SPLIT:
      seen["map"] = x
      return randomise_style(sr_key, x)
    return dropout(content_key, x, options.dropout) if name == "features" else x

  outputs, batch_stats = forward(model, state, batch, net_key, tap=content_path)
  loss_content = cross_entropy(outputs.logits, batch.label).mean()

  def style_logits(params: Any, x: jax.Array) -> jax.Array:
    drop = lambda name, x: (
      dropout(style_key, x, options.dropout) if name == "features" else x
    )
    path = state.replace(params={"backbone": params})
    mixed = batch.replace(image=randomise_content(cr_key, x))
    return forward(model, path, mixed, net_key, tap=drop, enter=_SPLIT)[
      0
    ].logits

  style, fixed = state.params["style"], jax.lax.stop_gradient
  logits = style_logits(style, fixed(seen["map"]))
  loss_style = cross_entropy(logits, batch.label).mean()

  norms = norms_before(state.params["backbone"], after)
  clipped = gradients.clip(state.params["backbone"], options.adversary_clip)
  moved = state.replace(params={"backbone": gradients.only(clipped, norms)})
  # Only its map is used, so the layers after the split are not computed.
  forward(model, moved, batch, net_key, tap=content_path)
  loss_adversary = ignorance(style_logits(fixed(style), seen["map"])).mean()

  loss = loss_content + loss_style + options.adversary_weight * loss_adversary
  metrics = {
    "loss_cls": loss_content,
    "loss_style": loss_style,
    "loss_adversary": loss_adversary,
    "style_accuracy": (logits.argmax(axis=1) == batch.label).mean(),
  }
  return loss, (batch_stats, state.memory, metrics)


def norms_before(params: Any, after: tuple[str, ...]) -> Any:
  """Marks scale and bias of the norms before the split.

  Args:
    params: parameters of the backbone, dicts of dicts. A layer with a scale is
      a norm.
    after: names of the layers after the split.

  Returns:
    Dicts like `params` of True and False.
  """

  def mark(tree: dict[str, Any], before: bool) -> dict[str, Any]:
    return {
      name: mark(value, before)
      if isinstance(value, dict)
      else before and "scale" in tree
      for name, value in tree.items()
    }

  return {name: mark(tree, name not in after) for name, tree in params.items()}


def randomise_style(key: jax.Array, x: jax.Array) -> jax.Array:
  """Gives each map a style between its own and that of a random other one.

  Args:
    key: random key.
    x: [B, H, W, C].

  Returns:
    [B, H, W, C]; its means are a mean + (1 - a) mean[other], its variances
    likewise, a uniform in [0, 1] for each image.
  """
  order_key, part_key = jax.random.split(key)
  other = jax.random.permutation(order_key, len(x))
  part = jax.random.uniform(part_key, (len(x), 1, 1, 1))
  mean, var, content = separate(x)
  mean = part * mean + (1 - part) * mean[other]
  var = part * var + (1 - part) * var[other]
  return (content * jnp.sqrt(var + _EPSILON) + mean).astype(x.dtype)


def randomise_content(key: jax.Array, x: jax.Array) -> jax.Array:
  """Gives each style [B, H, W, C] the content of a random other map."""
  other = jax.random.permutation(key, len(x))
  mean, var, content = separate(x)
  content = jax.lax.stop_gradient(content[other])
  return (content * jnp.sqrt(var + _EPSILON) + mean).astype(x.dtype)


def separate(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Mean and variance [B, 1, 1, C] of maps [B, H, W, C], and their content.

  The variance is torch's, with one place less in its denominator.
  """
  chex.assert_rank(x, 4)
  x = x.astype(jnp.float32)
  mean = x.mean(axis=(1, 2), keepdims=True)
  var = x.var(axis=(1, 2), ddof=1, keepdims=True)
  return mean, var, (x - mean) / jnp.sqrt(var + _EPSILON)


def ignorance(logits: jax.Array) -> jax.Array:
  """-log(p + 1e-5) of logits [B, K], mean over classes; p = 1/K is least."""
  return -jnp.log(jax.nn.softmax(logits) + 1e-5).mean(axis=-1)


def dropout(key: jax.Array, x: jax.Array, probability: float) -> jax.Array:
  """Sets values to 0 with `probability` and scales the others up."""
  kept = jax.random.bernoulli(key, 1 - probability, x.shape)
  return jnp.where(kept, x / (1 - probability), 0.0).astype(x.dtype)
