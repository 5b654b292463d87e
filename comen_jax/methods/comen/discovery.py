"""Latent domains from style: cluster a portion, then teach F_d the clusters.

The paper's footnote says only that F_d "was pretrained on a portion of samples
with pseudo domain labels". How this is done is our choice (docs/choices.md).
"""

import itertools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import threadpoolctl
from jax.experimental import multihost_utils

from comen_jax import steps
from comen_jax.data.sources import Sources
from comen_jax.errors import UserError
from comen_jax.losses import cross_entropy
from comen_jax.nn.style import DomainPredictor
from comen_jax.steps import FeatureStep
from comen_jax.train_state import TrainState

_HELD_OUT = 0.2  # Share of the portion that tests whether F_d learned.
_BATCH = 128
_COMPONENTS = 8  # A full covariance of all 2C dimensions would overfit.


class Pretraining(NamedTuple):
  """How F_d is pretrained.

  Attributes:
    clustering: name of the clustering, one of `CLUSTERINGS`.
    portion: share of the source training images that is clustered.
    num_steps: number of Adam steps.
    true_domains: use the true domains in place of clusters.
  """

  clustering: str
  portion: float
  num_steps: int
  true_domains: bool = False


class Pretrained(NamedTuple):
  """F_d after pretraining.

  Attributes:
    params: parameters of `DomainPredictor`.
    mean, std: float32 [2C], statistics of the clustered style.
    agreement: share of held-out images for which F_d finds their cluster.
  """

  params: Any
  mean: np.ndarray
  std: np.ndarray
  agreement: float


def pretrain_predictor(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
  *,
  predictor: DomainPredictor,
  how: Pretraining,
) -> Pretrained:
  """Clusters the style of some source images and trains F_d on the clusters.

  Args:
    state: the state whose backbone gives the style.
    sources: the source images; the portion is drawn from the training rows.
    feature_step: the jitted feature step.
    key: random key of this stage.
    predictor: F_d.
    how: clustering, portion and number of steps.
  """
  draw_key, style_key, view_key, fit_key = jax.random.split(key, 4)
  seed = int(jax.random.randint(draw_key, (), 0, 2**31 - 1))
  rng = np.random.default_rng(seed)
  available = len(sources.train_rows)
  count = round(how.portion * available)
  if count < predictor.num_domains:
    raise UserError(
      f"num_domains={predictor.num_domains} is more than the {count} images"
      f" that comen.portion={how.portion} takes of {available}: lower"
      " num_domains or raise comen.portion"
    )
  rows = rng.choice(sources.train_rows, count, replace=False)
  style = _styles(state, sources, feature_step, rows, style_key, False)
  mean, std = style.mean(axis=0), style.std(axis=0) + 1e-5
  if how.true_domains:
    labels = sources.true_domains(rows)
  else:
    labels = cluster(
      (style - mean) / std, predictor.num_domains, how.clustering, seed
    )

  held_out = round(_HELD_OUT * count)
  views = _styles(state, sources, feature_step, rows[held_out:], view_key, True)
  params = _fit(
    predictor, (views - mean) / std, labels[held_out:], fit_key, how.num_steps
  )
  agreement = 1.0
  if held_out:
    found = predict_domains(predictor, params, (style[:held_out] - mean) / std)
    agreement = float((found == labels[:held_out]).mean())
  return Pretrained(
    params, mean.astype(np.float32), std.astype(np.float32), agreement
  )


def cluster(
  style: np.ndarray, num_domains: int, method: str, seed: int
) -> np.ndarray:
  """Standardised style [N, 2C] -> pseudo domain labels int32 [N].

  Process 0 clusters with one thread in float64, so that labels depend on the
  seed alone. The other processes receive its labels.
  """
  labels = np.zeros(len(style), np.int32)
  if jax.process_index() == 0:
    # Imported here: only training needs it, and it takes a second.
    from sklearn.exceptions import ConvergenceWarning

    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
      warnings.simplefilter("ignore", ConvergenceWarning)
      labels = _CLUSTERINGS[method](
        np.asarray(style, np.float64), num_domains, seed
      )
  if jax.process_count() > 1:
    labels = multihost_utils.broadcast_one_to_all(labels.astype(np.int32))
  return np.asarray(labels, np.int32)


def _kmeans(style: np.ndarray, num_domains: int, seed: int) -> np.ndarray:
  from sklearn.cluster import KMeans

  model = KMeans(num_domains, n_init=10, random_state=seed)
  return model.fit_predict(style)


def _gmm(style: np.ndarray, num_domains: int, seed: int) -> np.ndarray:
  from sklearn.decomposition import PCA
  from sklearn.mixture import GaussianMixture

  components = min(_COMPONENTS, *style.shape)
  # Whitened: the mixture starts from k-means, which the largest component
  # (brightness, as a rule) would dominate otherwise.
  pca = PCA(components, whiten=True, random_state=seed)
  model = GaussianMixture(
    num_domains, covariance_type="full", n_init=5, reg_covar=1e-4,
    random_state=seed,
  )  # fmt: skip
  return model.fit_predict(pca.fit_transform(style))


_CLUSTERINGS = {"kmeans": _kmeans, "gmm": _gmm}
CLUSTERINGS = tuple(_CLUSTERINGS)


def predict_domains(
  predictor: DomainPredictor, params: Any, style: np.ndarray
) -> np.ndarray:
  """Standardised style [N, 2C] -> most probable domain of F_d, int [N]."""
  logits = predictor.apply(_variables(params, style), style)
  return np.asarray(logits).argmax(axis=1)


def _styles(
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


def _fit(
  predictor: DomainPredictor,
  style: np.ndarray,
  labels: np.ndarray,
  key: jax.Array,
  num_steps: int,
) -> Any:
  """Trains F_d with Adam on cross-entropy, in seeded batches -> params."""
  init_key, batch_key = jax.random.split(key)
  style = jnp.asarray(style, jnp.float32)
  labels = jnp.asarray(labels)
  params = jax.jit(predictor.init)(init_key, style[:1])["params"]
  tx = optax.adam(3e-3)

  def loss(params, rows):
    logits = predictor.apply(_variables(params, style), style[rows])
    return cross_entropy(logits, labels[rows]).mean()

  def step(carry, key):
    params, opt_state = carry
    rows = jax.random.randint(key, (_BATCH,), 0, len(style))
    grads = jax.grad(loss)(params, rows)
    # Optax raises a float to the power of its int32 step count.
    with jax.numpy_dtype_promotion("standard"):
      updates, opt_state = tx.update(grads, opt_state, params)
    return (optax.apply_updates(params, updates), opt_state), None

  @jax.jit
  def run(params):
    keys = jax.random.split(batch_key, num_steps)
    return jax.lax.scan(step, (params, tx.init(params)), keys)[0][0]

  return jax.device_get(run(params))
