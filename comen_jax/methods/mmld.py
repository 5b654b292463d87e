"""MMLD: finds latent domains by clustering, and hides them from the features.

Matsuura and Harada, "Domain generalization using a mixture of multiple latent
domains", AAAI 2020.

Before every epoch all source images are clustered by their style: mean and
deviation of every channel of two early feature maps, reduced to 256 principal
components, k-means. Clusters keep their numbers from epoch to epoch as well as
they can (the assignment with most images in common). Then

  L = CE(class) + CE(D(reverse(features, a)), cluster) + a H(class prediction)

with D a discriminator of two hidden layers, H the mean entropy, and the ramp
a = 2 / (1 + exp(-10 epoch / epochs)) - 1, which is 0 in the first epoch. The
cross-entropy of clusters weighs each image by the inverse size of its cluster.

The official code (mil-tokyo/dg_mmld) is followed. It trains new layers, the
head and D, ten times as fast as the pretrained ones: so do we if the backbone
is pretrained. From a random start all layers are new and have one rate. For
AlexNet the code takes the maps after the second and the third ReLU; ours are
those after the first two poolings. There a new class head starts from Xavier's
distribution with gain 0.1; ours starts as the backbone's does. The number of
clusters is `num_domains`. How the reversed gradient is bounded is ours
(`adversary`).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax import steps
from comen_jax.data.batches import Batch
from comen_jax.data.sources import Sources
from comen_jax.errors import UserError
from comen_jax.losses import cross_entropy, prediction_entropy
from comen_jax.methods import adversary
from comen_jax.methods.base import Latent, Method, Report, Stage, Task
from comen_jax.methods.comen import clustering
from comen_jax.methods.options.label_free import Mmld as Options
from comen_jax.steps import FeatureStep, Metrics, forward
from comen_jax.train_state import TrainState

StyleStep = Callable[[TrainState, Batch], jax.Array]

_DISCRIMINATOR = "discriminator"
_EPSILON = 1e-5  # Added to a variance, as in the official code.


@flax.struct.dataclass
class Memory:
  """What MMLD remembers.

  Attributes:
    domains: int32 [N], cluster of every source row; -1 for all other rows.
    weights: float32 [M], weight of an image by its cluster; their sum is M.
  """

  domains: jax.Array
  weights: jax.Array


def check_images(
  options: Options, norm: str, num_domains: int, images: int
) -> None:
  """Raises UserError if there are fewer images than clusters."""
  if images < num_domains:
    raise UserError(
      f"num_domains={num_domains} is more than the {images} source images:"
      " lower it"
    )


def create(task: Task, options: Options) -> Method:
  """Makes MMLD: one stage, which clusters before each of its epochs."""
  discriminator = adversary.Discriminator(
    task.num_domains, options.width, options.dropout
  )

  def init(key: jax.Array, variables: Any) -> tuple[dict[str, Any], Memory]:
    keys = dict(zip(("params", "dropout"), jax.random.split(key)))
    made = discriminator.init(keys, jnp.zeros((1, task.feature_dim)))
    memory = Memory(
      jnp.full(task.num_rows, -1, jnp.int32), jnp.ones(task.num_domains)
    )
    return {_DISCRIMINATOR: made["params"]}, memory

  new_layers = (_DISCRIMINATOR, f"backbone/{task.model.head}")
  stage = Stage(
    "train",
    task.epochs,
    partial(mmld_loss, task=task, discriminator=discriminator, options=options),
    prepare=partial(
      find_domains,
      task=task,
      options=options,
      style_of=jit_style_step(task, options),
    ),
    prepare_each_epoch=True,
    scales=(
      dict.fromkeys(new_layers, options.new_layer_scale)
      if task.pretrained
      else {}
    ),
  )
  return Method(stages=(stage,), init=init, describe=lambda state: {})


def mmld_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  task: Task,
  discriminator: adversary.Discriminator,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """CE(class) + CE(cluster), reversed at the features, + a H(class)."""
  drop_key, own_key = jax.random.split(key)
  outputs, batch_stats = forward(task.model, state, batch, drop_key)
  loss_cls = cross_entropy(outputs.logits, batch.label).mean()
  loss_entropy = prediction_entropy(outputs.logits).mean()
  # The same in all steps of an epoch: 0 in the first one.
  epoch = state.step // task.steps_per_epoch
  a = adversary.ramp(epoch.astype(jnp.float32) / task.epochs)
  weight = adversary.bounded_weight(options.adversary_weight, task)
  logits = discriminator.apply(
    {"params": state.params[_DISCRIMINATOR]},
    adversary.hide(outputs.features, weight * a, options.adversary_clip),
    rngs={"dropout": own_key},
  )
  domains = state.memory.domains[batch.row]
  weights = state.memory.weights[domains]
  each = cross_entropy(logits, domains)
  loss_domain = (weights * each).sum() / weights.sum()
  loss = loss_cls + loss_domain + options.entropy_weight * a * loss_entropy
  metrics = {
    "loss_cls": loss_cls,
    "loss_domain": loss_domain,
    "loss_entropy": loss_entropy,
    "domain_accuracy": (logits.argmax(axis=1) == domains).mean(),
  }
  return loss, (batch_stats, state.memory, metrics)


def find_domains(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
  *,
  task: Task,
  options: Options,
  style_of: StyleStep,
) -> tuple[TrainState, Report]:
  """Clusters the style of all source images into the memory."""
  rows, count = sources.rows, task.num_domains
  style = steps.map_rows(
    partial(style_of, state), sources.batches(rows), len(rows)
  )
  labels = clustering.cluster(
    principal_components(style.astype(np.float64), options.components),
    np.arange(len(rows)),
    count,
    "kmeans",
    seed=int(jax.random.randint(key, (), 0, 2**31 - 1)),
  )
  before = np.asarray(state.memory.domains)[rows]
  labels = clustering.renumber(labels, before, count)
  domains = np.full(task.num_rows, -1, np.int32)
  domains[rows] = labels
  sizes = np.bincount(labels, minlength=count)
  memory = Memory(jnp.asarray(domains), jnp.asarray(inverse_sizes(sizes)))
  metrics = {}
  if (before >= 0).all():
    metrics["kept_domains"] = float((labels == before).mean())
  latent = Latent(rows, np.eye(count)[labels])
  return state.replace(memory=memory), Report(metrics, latent)


def jit_style_step(task: Task, options: Options) -> StyleStep:
  """Jits `style_step` once for all epochs of a run."""

  @cache
  def jitted(sharding: jax.sharding.Sharding) -> StyleStep:
    maps = [name for name in task.model.points if name.startswith("layer")]
    layers = options.layers or tuple(maps[:2])
    step = partial(style_step, task=task, layers=layers)
    return jax.jit(step, out_shardings=sharding)

  # Replicated like the state: every process gets the styles of the whole batch.
  # Only the state knows on which devices.
  return lambda state, batch: jitted(state.step.sharding)(state, batch)


def style_step(
  state: TrainState, batch: Batch, *, task: Task, layers: tuple[str, ...]
) -> jax.Array:
  """Mean and deviation of the channels of some maps: [B, 2 C_1 + 2 C_2...]."""
  found = []

  def tap(name: str, x: jax.Array) -> jax.Array:
    if name in layers:
      z = x.astype(jnp.float32)
      divisor = max(z.shape[1] * z.shape[2] - 1, 1)
      mean = z.mean(axis=(1, 2), keepdims=True)
      var = jnp.square(z - mean).sum(axis=(1, 2)) / divisor
      found.extend([mean[:, 0, 0], jnp.sqrt(var + _EPSILON)])
    return x

  variables = {
    "params": state.params["backbone"],
    "batch_stats": state.batch_stats,
  }
  images = task.views.evaluate(batch.image)
  task.model.apply(variables, images, train=False, tap=tap)
  return jnp.concatenate(found, axis=1)


def principal_components(style: np.ndarray, count: int) -> np.ndarray:
  """Projects [N, F] to its `count` principal components; no whitening."""
  if count >= style.shape[1]:
    return style
  centred = style - style.mean(axis=0)
  _, directions = np.linalg.eigh(centred.T @ centred)
  return centred @ directions[:, ::-1][:, :count]


def inverse_sizes(sizes: np.ndarray) -> np.ndarray:
  """Weights [M] in inverse proportion to cluster sizes [M]; their sum is M."""
  inverse = 1 / np.maximum(sizes, 1)
  return (len(sizes) * inverse / inverse.sum()).astype(np.float32)
