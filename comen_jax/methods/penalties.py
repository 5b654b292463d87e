"""Penalties on what differs between the source domains: VREx, IRM, CORAL, MMD.

All four read domain labels. With L_m the mean cross-entropy of the images of
domain m in a batch, they minimise

  mean over m of L_m + weight * penalty.

- VREx (Krueger et al., "Out-of-Distribution Generalization via Risk
  Extrapolation", ICML 2021): the variance of L_m over the domains.
- IRM (Arjovsky et al., "Invariant Risk Minimization", 2019), its practical form
  IRMv1: the mean over m of the squared derivative of L_m(s * logits) by s at 1.
- CORAL (Sun and Saenko, "Deep CORAL", ECCV 2016 workshops): squared differences
  of the means and covariances of the features, over pairs of domains.
- MMD (Li et al., "Domain Generalization with Adversarial Feature Learning",
  CVPR 2018): the maximum mean discrepancy of the features, over pairs.

The equations are those of DomainBed (facebookresearch/DomainBed), which all
later comparisons use. Papers and DomainBed differ: Deep CORAL compares
covariances only, without means, and MMD-AAE has an autoencoder and an adversary
besides; both were made for other tasks. We follow DomainBed, except that
- our batches are mixed, so domains have different numbers of images in a batch;
- DomainBed gives VREx and IRM weight 1 for 500 of 5,000 steps, then the full
  weight, with a fresh Adam. SGD cannot forget like that, so the weight rises
  linearly from 0 over a share of the run (`warmup`);
- the weights of VREx (3) and IRM (1) are those of the Transfer Learning Library
  (thuml/Transfer-Learning-Library), which trains with SGD as we do. DomainBed's
  are 10 and 100, for Adam.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data.batches import Batch
from comen_jax.losses import cross_entropy, masked_mean
from comen_jax.methods import domain_labels
from comen_jax.methods.base import Method, Task
from comen_jax.methods.options.labelled import Coral, Irm, Mmd, Vrex
from comen_jax.nn.backbone import Backbone, Outputs
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

# (outputs, labels [B], w [B, M]) -> scalar.
Penalty = Callable[[Outputs, jax.Array, jax.Array], jax.Array]
_GAMMAS = tuple(10.0**power for power in range(-3, 4))
_HIGHEST = jax.lax.Precision.HIGHEST


def create_vrex(task: Task, options: Vrex) -> Method:
  """Makes VREx."""

  def penalty(outputs: Outputs, labels: jax.Array, w: jax.Array) -> jax.Array:
    each = cross_entropy(outputs.logits, labels)
    return variance(*domain_labels.means(each, w))

  return _create("vrex", task, penalty, options.weight, options.warmup)


def create_irm(task: Task, options: Irm) -> Method:
  """Makes IRM."""
  penalty = lambda outputs, labels, w: invariance(outputs.logits, labels, w)
  return _create("irm", task, penalty, options.weight, options.warmup)


def create_coral(task: Task, options: Coral) -> Method:
  """Makes CORAL."""
  penalty = lambda outputs, labels, w: coral(outputs.features, w)
  return _create("coral", task, penalty, options.weight)


def create_mmd(task: Task, options: Mmd) -> Method:
  """Makes MMD."""
  penalty = lambda outputs, labels, w: mmd(outputs.features, w)
  return _create("mmd", task, penalty, options.weight)


def _create(
  name: str, task: Task, penalty: Penalty, weight: float, warmup: float = 0.0
) -> Method:
  domain_labels.check_sources(name, task)
  steps = warmup * task.epochs * task.steps_per_epoch
  loss = partial(
    penalised,
    model=task.model,
    penalty=penalty,
    weight=lambda step: weight * rise(step, steps),
    num_sources=task.num_sources,
  )
  return domain_labels.method(task, loss)


def penalised(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: Backbone,
  penalty: Penalty,
  weight: Callable[[jax.Array], jax.Array],
  num_sources: int,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """Mean over the domains of L_m, and the weighted penalty."""
  outputs, batch_stats = forward(model, state, batch, key)
  w = domain_labels.weights(state.memory, batch, num_sources)
  each = cross_entropy(outputs.logits, batch.label)
  loss_cls = masked_mean(*domain_labels.means(each, w))
  value = penalty(outputs, batch.label, w)
  loss = loss_cls + weight(state.step) * value
  metrics = {"loss_cls": loss_cls, "loss_penalty": value}
  return loss, (batch_stats, state.memory, metrics)


def rise(step: jax.Array, steps: float) -> jax.Array:
  """Rises linearly from 0 at the first step to 1 after `steps` steps."""
  done = step.astype(jnp.float32)
  return jnp.minimum(done / steps, 1.0) if steps else jnp.ones_like(done)


def variance(losses: jax.Array, present: jax.Array) -> jax.Array:
  """Population variance of the losses [M] of the domains that are present."""
  mean = masked_mean(losses, present)
  return masked_mean(jnp.square(losses - mean), present)


def invariance(logits: jax.Array, labels: jax.Array, w: jax.Array) -> jax.Array:
  """IRM's penalty: mean over m of g_m1 g_m2.

  g is the derivative of L_m(s * logits) by s at s = 1, which is the mean over
  images of sum_k (p_k - 1[k = y]) logit_k. Its square is estimated without bias
  by the product of g over every other image of the domain with g over the
  remaining ones. A domain with one image has no such product.

  Args:
    logits: [B, K].
    labels: [B] int.
    w: [B, M], one-hot domains.
  """
  error = jax.nn.softmax(logits) - jax.nn.one_hot(labels, logits.shape[1])
  each = (error * logits).sum(axis=1)
  number = (jnp.cumsum(w, axis=0) * w).sum(axis=1, keepdims=True)
  odd, even = number % 2, 1 - number % 2
  first, has_first = domain_labels.means(each, w * odd)
  second, has_second = domain_labels.means(each, w * even)
  return masked_mean(first * second, has_first & has_second)


def coral(features: jax.Array, w: jax.Array) -> jax.Array:
  """CORAL's penalty: mean over pairs of domains i < j of

    mean_d (mu_i - mu_j)^2 + mean_de (C_i - C_j)^2,

  where C is the unbiased covariance. Domains with less than two images in the
  batch have none and are left out.

  Args:
    features: [B, D].
    w: [B, M], one-hot domains.
  """
  count = w.sum(axis=0)
  dot = partial(jnp.einsum, precision=_HIGHEST)
  mean = dot("bm,bd->md", w, features) / jnp.maximum(count, 1.0)[:, None]
  centred = features - dot("bm,md->bd", w, mean)
  covariance = dot("bm,bd,be->mde", w, centred, centred)
  covariance /= jnp.maximum(count - 1, 1.0)[:, None, None]
  i, j = np.triu_indices(w.shape[1], 1)
  pairs = jnp.square(mean[i] - mean[j]).mean(axis=1)
  pairs += jnp.square(covariance[i] - covariance[j]).mean(axis=(1, 2))
  enough = count >= 2
  return masked_mean(pairs, enough[i] & enough[j])


def mmd(features: jax.Array, w: jax.Array) -> jax.Array:
  """MMD's penalty: mean over pairs of domains i < j of

    mean k(x_i, x_i') + mean k(x_j, x_j') - 2 mean k(x_i, x_j),

  with k(x, y) the sum of exp(-gamma |x - y|^2) over gamma from 1e-3 to 1e3, and
  means over all pairs of images, an image with itself included.

  Args:
    features: [B, D].
    w: [B, M], one-hot domains.
  """
  square = jnp.square(features).sum(axis=1)
  product = jnp.dot(features, features.T, precision=_HIGHEST)
  distance = square[:, None] + square[None, :] - 2 * product
  # Rounding must not make a distance negative, nor part an image from itself:
  # exp(-gamma d) would make much of it.
  distance = jnp.maximum(distance, 0.0) * (1 - jnp.eye(len(features)))
  kernel = sum(jnp.exp(-gamma * distance) for gamma in _GAMMAS)
  count = w.sum(axis=0)
  share = w / jnp.maximum(count, 1.0)[None, :]
  means = jnp.einsum("bm,bc,cn->mn", share, kernel, share, precision=_HIGHEST)
  own = jnp.diagonal(means)
  i, j = np.triu_indices(w.shape[1], 1)
  present = count > 0
  return masked_mean(own[i] + own[j] - 2 * means[i, j], present[i] & present[j])
