"""CrossGrad: images moved towards another domain. It reads domain labels.

Shankar et al., "Generalizing Across Domains via Cross-Gradient Training", ICLR
2018. Beside the network F for classes y there is a second network D for domains
d, of the same kind. Each moves the images on which the other one is trained:

  x_d = x + step * clip(gradient of CE(D(x), d) by x),
  x_f = x + step * clip(gradient of CE(F(x), y) by x),
  loss = (1 - share) CE(F(x), y) + share CE(F(x_d), y)
       + (1 - share) CE(D(x), d) + share CE(D(x_f), d),

where clip limits each value to [-clip, clip], and no gradient goes through x_d
and x_f. Evaluation uses F.

The original code (vihari/crossgrad) has step 10 and batches of 32, Dassl
(KaiyangZhou/Dassl.pytorch), whose authors publish Digits-DG, has step 1. We
follow Dassl. In both, CE is the mean over the batch, so the gradient of an
image is divided by the batch size: with 128 images a step of 1 is tiny and clip
hardly ever acts. `summed` takes the sum over the batch instead, which does not
depend on the batch size; no code that we know does so.

D starts as a copy of F with a new head; in Dassl both start at random, or from
the same pretrained weights. D's running statistics are in the memory. Both are
trained by one optimiser, which equals Dassl's two as far as SGD with the same
settings goes.
"""

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy
from comen_jax.methods import domain_labels
from comen_jax.methods.base import Method, Task
from comen_jax.methods.options.labelled import CrossGrad
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

DOMAIN_NET = "domain_net"  # Name of D's parameters.


def create(task: Task, options: CrossGrad) -> Method:
  """Makes CrossGrad."""
  domain_labels.check_sources("crossgrad", task)
  loss = partial(
    cross_trained,
    model=task.model,
    domain_model=task.model.clone(num_classes=task.num_sources),
    options=options,
  )
  return domain_labels.method(
    task,
    loss,
    partial(_copy, head=task.model.head, num_sources=task.num_sources),
  )


def _copy(
  key: jax.Array, variables: dict[str, Any], *, head: str, num_sources: int
) -> tuple[dict[str, Any], Any]:
  """Parameters and running statistics of D: the backbone's, with a new head."""
  params, stats = jax.tree.map(
    jnp.copy, (variables["params"], variables["batch_stats"])
  )
  kernel = params[head]["kernel"]
  new = {
    "kernel": nn.initializers.lecun_normal()(key, (len(kernel), num_sources)),
    "bias": jnp.zeros(num_sources),
  }
  return {DOMAIN_NET: {**params, head: new}}, stats


def cross_trained(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  domain_model: Backbone,
  options: CrossGrad,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The losses of F and D, on the images as they are and as they were moved."""
  keys = jax.random.split(key, 4)
  domains = state.memory.domains[batch.row]
  d_state = state.replace(
    params={"backbone": state.params[DOMAIN_NET]},
    batch_stats=state.memory.own,
  )
  of_class = partial(_loss, model=model, batch=batch, labels=batch.label)
  of_domain = partial(_loss, model=domain_model, batch=batch, labels=domains)

  (class_loss, class_stats), class_gradient = _with_gradient(
    of_class, batch.image, state, keys[0]
  )
  (domain_loss, domain_stats), domain_gradient = _with_gradient(
    of_domain, batch.image, d_state, keys[1]
  )
  move = partial(moved, batch.image, options=options)
  moved_class, class_stats = of_class(
    move(domain_gradient), state.replace(batch_stats=class_stats), keys[2]
  )
  moved_domain, domain_stats = of_domain(
    move(class_gradient), d_state.replace(batch_stats=domain_stats), keys[3]
  )
  mix = lambda plain, other: (1 - options.share) * plain + options.share * other
  loss_cls, loss_domain = (
    mix(class_loss, moved_class),
    mix(domain_loss, moved_domain),
  )
  metrics = {
    "loss_cls": loss_cls,
    "loss_domain": loss_domain,
    "loss_moved": moved_class,
  }
  memory = state.memory.replace(own=domain_stats)
  return loss_cls + loss_domain, (class_stats, memory, metrics)


def moved(
  images: jax.Array, gradient: jax.Array, *, options: CrossGrad
) -> jax.Array:
  """Images [B, H, W, 3] moved along the gradient of a mean over the batch."""
  if options.summed:
    gradient *= len(images)
  shift = jnp.clip(gradient, -options.clip, options.clip)
  return jax.lax.stop_gradient(images + options.step * shift)


def _with_gradient(loss: Any, images: jax.Array, *rest: Any) -> Any:
  """((loss, statistics), gradient of the loss by the images)."""
  return jax.value_and_grad(loss, has_aux=True)(images, *rest)


def _loss(
  images: jax.Array,
  state: TrainState,
  key: jax.Array,
  *,
  model: Backbone,
  batch: Batch,
  labels: jax.Array,
) -> tuple[jax.Array, Any]:
  """Mean cross-entropy of a network, and its new running statistics."""
  outputs, stats = forward(model, state, batch.replace(image=images), key)
  return cross_entropy(outputs.logits, labels).mean(), stats
