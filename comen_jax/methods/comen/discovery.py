"""Latent domains from style: cluster a portion, then teach F_d the clusters.

The paper's footnote says only that F_d "was pretrained on a portion of samples
with pseudo domain labels". How this is done is our choice (docs/choices.md).
"""

import itertools
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from comen_jax import steps
from comen_jax.data.sources import Sources
from comen_jax.errors import UserError
from comen_jax.losses import cross_entropy
from comen_jax.methods.comen import clustering
from comen_jax.metrics import probabilities
from comen_jax.nn.style import DomainPredictor
from comen_jax.process import agreement
from comen_jax.steps import FeatureStep
from comen_jax.train_state import TrainState

_HELD_OUT = 0.2  # Share of the portion that tests whether F_d learned.
_BATCH = 128
_FLOOR = 0.1  # Least deviation of a channel's style, in medians of its kind.
LEAST_SHARE = 0.01  # A domain with fewer of the images counts as empty.
_TRIES = 4  # Clusterings to try before an empty domain is accepted.


class Pretraining(NamedTuple):
  """How F_d is pretrained.

  Attributes:
    clustering: name of the clustering, one of `CLUSTERINGS`.
    portion: share of the source training images that is clustered.
    num_steps: number of Adam steps.
    num_views: number of training views of each image to learn from; 0: the
      evaluation view.
    noise: deviation of the noise that is added to the standardised style.
    true_domains: use the true domains in place of clusters.
  """

  clustering: str
  portion: float
  num_steps: int
  num_views: int = 2
  noise: float = 0.3
  true_domains: bool = False


class Pretrained(NamedTuple):
  """F_d after pretraining.

  Attributes:
    params: parameters of `DomainPredictor`.
    mean, std: float32 [2C], statistics of the clustered style.
    agreement: share of held-out images for which F_d finds their cluster.
    labels: int32 [N], the clusters (or true domains) of all source rows.
    probs: [N, M], F_d's probabilities for all source rows.
    warnings: lines for the user.
  """

  params: Any
  mean: np.ndarray
  std: np.ndarray
  agreement: float
  labels: np.ndarray
  probs: np.ndarray
  warnings: tuple[str, ...]


def portion_size(portion: float, images: int, num_domains: int) -> int:
  """Returns how many of the images are clustered.

  Args:
    portion: share of the images that is clustered.
    images: number of source images for training.
    num_domains: number of clusters M.

  Raises:
    UserError: there are fewer images than clusters.
  """
  count = round(portion * images)
  if count < num_domains:
    raise UserError(
      f"num_domains={num_domains} is more than the {count} images that"
      f" comen.portion={portion} takes of {images}: lower num_domains or raise"
      " comen.portion"
    )
  return count


def pretrain_predictor(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
  *,
  predictor: DomainPredictor,
  how: Pretraining,
  before: np.ndarray | None = None,
) -> Pretrained:
  """Clusters the style of some source images and trains F_d on the clusters.

  Args:
    state: the state whose backbone gives the style.
    sources: the source images; the portion is drawn from the training rows.
    feature_step: the jitted feature step.
    key: random key of this stage.
    predictor: F_d.
    how: clustering, portion and number of steps.
    before: int [N], domains that the source rows had before, -1 if none. The
      clusters are numbered like them, so that SDNorm's branches stay theirs.
  """
  draw_key, style_key, view_key, fit_key = jax.random.split(key, 4)
  seed = int(jax.random.randint(draw_key, (), 0, 2**31 - 1))
  rng = np.random.default_rng(seed)
  count = portion_size(
    how.portion, len(sources.train_rows), predictor.num_domains
  )
  rows = sources.rows
  portion = rng.choice(
    np.flatnonzero(np.isin(rows, sources.train_rows)), count, replace=False
  )
  style = styles(state, sources, feature_step, rows, style_key, False)
  mean, std = statistics(style[portion])
  style = (style - mean) / std
  if how.true_domains:
    labels, warnings = sources.true_domains(rows), ()
  else:
    labels, warnings = _cluster(
      style, portion, predictor.num_domains, how, seed
    )
    if before is not None:
      labels = clustering.renumber(labels, before, predictor.num_domains)

  held_out, taught = np.split(portion, [round(_HELD_OUT * count)])
  examples, of_examples = style[taught], labels[taught]
  if how.num_views:
    views = [
      styles(state, sources, feature_step, rows[taught], key, True)
      for key in jax.random.split(view_key, how.num_views)
    ]
    examples = (np.concatenate(views) - mean) / std
    of_examples = np.tile(of_examples, how.num_views)
  fitted = _fit(
    jnp.asarray(examples, jnp.float32),
    jnp.asarray(of_examples),
    fit_key,
    predictor=predictor,
    noise=how.noise,
    num_steps=how.num_steps,
  )
  params = agreement.same(jax.device_get(fitted))
  probs = probabilities(predictor.apply(_variables(params, style), style))
  right = probs.argmax(axis=1) == labels
  return Pretrained(
    params,
    mean.astype(np.float32),
    std.astype(np.float32),
    float(right[held_out].mean()) if len(held_out) else 1.0,
    labels,
    probs,
    warnings,
  )


def statistics(style: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Mean and deviation [2C] that standardise styles [N, 2C].

  A filter that is dead on these images has no deviation, and any noise in it
  would be blown up. So the deviation has a floor, relative to the other means
  or to the other deviations.
  """
  mean, std = style.mean(axis=0), style.std(axis=0)
  halves = np.split(std, 2)
  floors = [np.full(len(h), _FLOOR * np.median(h) + 1e-5) for h in halves]
  return mean, np.maximum(std, np.concatenate(floors))


def _cluster(
  style: np.ndarray,
  portion: np.ndarray,
  num_domains: int,
  how: Pretraining,
  seed: int,
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Clusters again, with another seed, while a cluster is nearly empty.

  If none of the tries is good, the one whose smallest cluster is the largest
  is taken.
  """
  best, warnings = None, []
  for attempt in range(_TRIES):
    labels = clustering.cluster(
      style, portion, num_domains, how.clustering, seed + attempt
    )
    sizes = np.bincount(labels, minlength=num_domains)
    if best is None or sizes.min() > best[0]:
      best = sizes.min(), labels
    if sizes.min() >= LEAST_SHARE * len(labels):
      break
    warnings.append(
      f"cluster {sizes.argmin()} has {sizes.min()} of {len(labels)} images:"
      + (" clustering again" if attempt + 1 < _TRIES else " lower num_domains")
    )
  return best[1], tuple(warnings)


def styles(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  rows: np.ndarray,
  key: jax.Array,
  training_view: bool,
) -> np.ndarray:
  """Style [N, 2C] in float64; each batch has its own key for its views."""
  number = itertools.count()

  def style(batch):
    batch_key = jax.random.fold_in(key, next(number))
    return feature_step(state, batch, batch_key, training_view).style

  found = steps.map_rows(style, sources.batches(rows), len(rows))
  return found.astype(np.float64)


def _variables(params: Any, style: np.ndarray) -> dict[str, Any]:
  """Variables of F_d for a style that is already standardised."""
  width = style.shape[1]
  return {
    "params": params,
    "batch_stats": {"mean": np.zeros(width), "std": np.ones(width)},
  }


@partial(jax.jit, static_argnames=("predictor", "noise", "num_steps"))
def _fit(
  style: jax.Array,
  labels: jax.Array,
  key: jax.Array,
  *,
  predictor: DomainPredictor,
  noise: float,
  num_steps: int,
) -> Any:
  """Trains F_d with Adam on cross-entropy, in seeded batches -> params.

  Noise that is new in each step makes F_d unsure where two domains meet. On the
  same styles again and again it would become sure of everything. The styles are
  arguments, not constants, so that runs share the compiled function.
  """
  init_key, batch_key = jax.random.split(key)
  params = predictor.init(init_key, style[:1])["params"]
  tx = optax.adam(3e-3)

  def loss(params, rows, moved_by):
    logits = predictor.apply(_variables(params, style), style[rows] + moved_by)
    return cross_entropy(logits, labels[rows]).mean()

  def step(carry, key):
    params, opt_state = carry
    row_key, noise_key = jax.random.split(key)
    rows = jax.random.randint(row_key, (_BATCH,), 0, len(style))
    moved_by = jax.random.normal(noise_key, (_BATCH, style.shape[1]))
    grads = jax.grad(loss)(params, rows, noise * moved_by)
    # Optax raises a float to the power of its int32 step count.
    with jax.numpy_dtype_promotion("standard"):
      updates, opt_state = tx.update(grads, opt_state, params)
    return (optax.apply_updates(params, updates), opt_state), None

  keys = jax.random.split(batch_key, num_steps)
  return jax.lax.scan(step, (params, tx.init(params)), keys)[0][0]
