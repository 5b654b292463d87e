"""DANN: features from which no domain can be told. It reads domain labels.

Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016:

  loss = CE(class) + weight * CE(discriminator(reverse(features, a)), domain).

The gradient of the domain loss is turned around and multiplied by a where it
enters the features, so the discriminator learns to tell the source domains and
the network learns to hide them. a = 2 / (1 + exp(-10 t)) - 1 rises from 0 to 1
while t, the share of training that is done, does.

Paper and DomainBed differ: DomainBed has no ramp, and alternates a step of the
discriminator with a step of the network, both by Adam. We follow the paper, and
take DomainBed's discriminator, which has three layers of width 256. How its
gradient is bounded is ours (`adversary`).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy, masked_mean
from comen_jax.methods import adversary, domain_labels
from comen_jax.methods.base import Method, Task
from comen_jax.methods.options.labelled import Dann
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


def create(task: Task, options: Dann) -> Method:
  """Makes DANN."""
  domain_labels.check_sources("dann", task)
  discriminator = adversary.Discriminator(task.num_sources, options.width)

  def extra(key: jax.Array, variables: Any) -> tuple[dict[str, Any], tuple]:
    features = jnp.zeros((1, task.feature_dim))
    return {"discriminator": discriminator.init(key, features)["params"]}, ()

  loss = partial(
    adversarial,
    task=task,
    discriminator=discriminator,
    options=options,
  )
  return domain_labels.method(task, loss, extra)


def adversarial(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  task: Task,
  discriminator: adversary.Discriminator,
  options: Dann,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """CE(class) + weight * CE(domain), reversed where it enters the features.

  Args:
    state: all that training changes.
    batch: normalised images.
    key: key of this step.
    task: what is to be learned, and the backbone.
    discriminator: tells the domain from the features.
    options: settings of DANN.
  """
  outputs, batch_stats = forward(task.model, state, batch, key)
  loss_cls = cross_entropy(outputs.logits, batch.label).mean()
  steps = task.epochs * task.steps_per_epoch
  a = adversary.ramp(state.step.astype(jnp.float32) / steps)
  weight = adversary.bounded_weight(1.0, task)
  features = adversary.hide(
    outputs.features, weight * a, options.adversary_clip
  )
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
  loss = loss_cls + options.weight * loss_domain
  return loss, (batch_stats, state.memory, metrics)
