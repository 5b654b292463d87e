"""MLDG: a step on some domains must help on another. It reads domain labels.

Li et al., "Learning to Generalize: Meta-Learning for Domain Generalization",
AAAI 2018. In each step one source domain, drawn at random, is meta-test, and
the others are meta-train. With F the mean of the losses of the meta-train
domains and G the loss of the meta-test domain,

  loss = (F(theta) + beta G(theta - alpha dF/dtheta)) / (1 + beta).

The gradient goes through the inner step, too (second order), unless
`first_order` is set.

Paper, official code (HAHA-DL/MLDG, a small network on fixed features) and
DomainBed differ: the official code sums over the meta-train domains where the
paper takes their mean; DomainBed is first order, with Adam as inner step. We
follow the paper. The factor 1 / (1 + beta) is ours: it keeps a step as large as
DeepAll's, since all methods here share a learning rate. So is alpha = .01,
between the learning rates of our configs (.05 and .001): the official .5 is for
its small network.

Batches are mixed, so BatchNorm sees the meta-test images in both passes. Its
running statistics come from the first pass.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy, masked_mean
from comen_jax.methods import domain_labels
from comen_jax.methods.base import Method, Task
from comen_jax.methods.options.labelled import Mldg
from comen_jax.nn.backbone import Backbone
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState


def create(task: Task, options: Mldg) -> Method:
  """Makes MLDG."""
  domain_labels.check_sources("mldg", task)
  loss = partial(
    meta, model=task.model, options=options, num_sources=task.num_sources
  )
  return domain_labels.method(task, loss)


def meta(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  options: Mldg,
  num_sources: int,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The loss of the meta-train domains, and of meta-test after a step."""
  choice_key, key = jax.random.split(key)
  w = domain_labels.weights(state.memory, batch, num_sources)
  present = w.sum(axis=0) > 0
  # One of the domains that the batch has, each as likely as the others.
  chances = jnp.where(present, 0.0, -jnp.inf)
  held_out = jax.random.categorical(choice_key, chances)
  meta_test = jnp.arange(num_sources) == held_out

  def losses(backbone: Any) -> tuple[jax.Array, Any]:
    """Losses of the domains [M], and the new running statistics."""
    params = {**state.params, "backbone": backbone}
    outputs, stats = forward(model, state.replace(params=params), batch, key)
    each = cross_entropy(outputs.logits, batch.label)
    return domain_labels.means(each, w)[0], stats

  def meta_train_loss(backbone: Any) -> tuple[jax.Array, Any]:
    of_domains, stats = losses(backbone)
    return masked_mean(of_domains, present & ~meta_test), stats

  theta = state.params["backbone"]
  (train, stats), gradient = jax.value_and_grad(meta_train_loss, has_aux=True)(
    theta
  )
  if options.first_order:
    gradient = jax.lax.stop_gradient(gradient)
  stepped = jax.tree.map(lambda p, g: p - options.rate * g, theta, gradient)
  test = masked_mean(losses(stepped)[0], meta_test)
  loss = (train + options.weight * test) / (1 + options.weight)
  metrics = {"loss_meta_train": train, "loss_meta_test": test}
  return loss, (stats, state.memory, metrics)
