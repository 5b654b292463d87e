"""DANN: features from which no domain can be told. It reads domain labels.

Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016:

  loss = CE(class) + weight * CE(discriminator(reverse(features, a)), domain).

The gradient of the domain loss is turned around and multiplied by a where it
enters the features, so the discriminator learns to tell the source domains and
the network learns to hide them. a = 2 / (1 + exp(-10 t)) - 1 rises from 0 to 1
while t, the share of training that is done, does.

Paper and DomainBed differ: DomainBed has no ramp, and alternates a step of the
discriminator with a step of the network, both by Adam. We follow the paper, and
take DomainBed's discriminator, which has three layers of width 256.
"""

from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax import gradients
from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy, masked_mean
from comen_jax.methods import domain_labels
from comen_jax.methods.base import Method, Task
from comen_jax.methods.options.labelled import Dann
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


class Discriminator(nn.Module):
  """Maps features [B, D] to logits of the source domains [B, M].

  Attributes:
    num_sources: number of source domains M.
    width: width of its two hidden layers.
  """

  num_sources: int
  width: int

  @nn.compact
  def __call__(self, features: jax.Array) -> jax.Array:
    x = features
    for _ in range(2):
      x = nn.relu(nn.Dense(self.width)(x))
    return nn.Dense(self.num_sources)(x)


def create(task: Task, options: Dann) -> Method:
  """Makes DANN."""
  domain_labels.check_sources("dann", task)
  discriminator = Discriminator(task.num_sources, options.width)

  def extra(key: jax.Array, variables: Any) -> tuple[dict[str, Any], tuple]:
    features = jnp.zeros((1, task.feature_dim))
    return {"discriminator": discriminator.init(key, features)["params"]}, ()

  loss = partial(
    adversarial,
    model=task.model,
    discriminator=discriminator,
    weight=options.weight,
    steps=task.epochs * task.steps_per_epoch,
  )
  return domain_labels.method(task, loss, extra)


def adversarial(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  discriminator: Discriminator,
  weight: float,
  steps: int,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """CE(class) + weight * CE(domain), reversed where it enters the features.

  Args:
    state: all that training changes.
    batch: normalised images.
    key: key of this step.
    model: the backbone.
    discriminator: tells the domain from the features.
    weight: weight of the domain loss.
    steps: number of steps of the whole run.
  """
  outputs, batch_stats = forward(model, state, batch, key)
  loss_cls = cross_entropy(outputs.logits, batch.label).mean()
  features = gradients.reverse(outputs.features, strength(state.step, steps))
  logits = discriminator.apply(
    {"params": state.params["discriminator"]}, features
  )
  domains = state.memory.domains[batch.row]
  # A row without a known domain, -1, teaches nothing.
  each = cross_entropy(logits, jnp.maximum(domains, 0))
  loss_domain = masked_mean(each, domains >= 0)
  metrics = {
    "loss_cls": loss_cls,
    "loss_domain": loss_domain,
    "domain_accuracy": (logits.argmax(axis=1) == domains).mean(),
  }
  loss = loss_cls + weight * loss_domain
  return loss, (batch_stats, state.memory, metrics)


def strength(step: jax.Array, steps: int) -> jax.Array:
  """Factor of the reversed gradient, from 0 at the start to 1 at the end."""
  done = step.astype(jnp.float32) / steps
  return 2 / (1 + jnp.exp(-10 * done)) - 1
