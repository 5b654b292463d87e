"""Clusters of style: a portion of the images is clustered, all get a label.

Which clustering is used is our choice (docs/choices.md). No label of a domain
is read.
"""

import warnings

import jax
import numpy as np
import threadpoolctl

from comen_jax.process import agreement

_COMPONENTS = 8  # A full covariance of all 2C dimensions would overfit.


def cluster(
  style: np.ndarray,
  portion: np.ndarray,
  num_domains: int,
  method: str,
  seed: int,
) -> np.ndarray:
  """Clusters a portion of the styles -> pseudo domain labels of all, int32 [N].

  Process 0 clusters with one thread in float64, so that labels depend on the
  seed alone. The other processes receive its labels.

  Args:
    style: [N, 2C], standardised styles.
    portion: int [n], the rows of `style` to which the clusters are fitted.
    num_domains: number of clusters M.
    method: name of the clustering, one of `CLUSTERINGS`.
    seed: seed of the clustering.
  """
  labels = np.zeros(len(style), np.int32)
  if jax.process_index() == 0:
    # Imported here: only training needs it, and it takes a second.
    from sklearn.exceptions import ConvergenceWarning

    style = np.asarray(style, np.float64)
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
      warnings.simplefilter("ignore", ConvergenceWarning)
      model = _CLUSTERINGS[method](num_domains, seed, style[portion].shape)
      labels = model.fit(style[portion]).predict(style)
  return np.asarray(agreement.same(labels.astype(np.int32)))


def renumber(labels: np.ndarray, before: np.ndarray, count: int) -> np.ndarray:
  """Numbers clusters [N] so that most images keep the one they had before.

  Args:
    labels: int [N], new clusters.
    before: int [N], old clusters; -1 if there was none.
    count: number of clusters M.
  """
  from scipy.optimize import linear_sum_assignment

  common = np.zeros((count, count), np.int64)
  known = before >= 0
  np.add.at(common, (labels[known], before[known]), 1)
  _, numbers = linear_sum_assignment(common, maximize=True)
  return numbers[labels].astype(np.int32)


def _kmeans(num_domains: int, seed: int, shape: tuple[int, int]):
  from sklearn.cluster import KMeans

  return KMeans(num_domains, n_init=10, random_state=seed)


def _gmm(num_domains: int, seed: int, shape: tuple[int, int]):
  from sklearn.decomposition import PCA
  from sklearn.mixture import GaussianMixture
  from sklearn.pipeline import make_pipeline

  # Whitened: the mixture starts from k-means, which the largest component
  # (brightness, as a rule) would dominate otherwise.
  components = min(_COMPONENTS, *shape)
  return make_pipeline(
    PCA(components, whiten=True, random_state=seed),
    GaussianMixture(
      num_domains, covariance_type="full", n_init=5, reg_covar=1e-4,
      random_state=seed,
    ),
  )  # fmt: skip


_CLUSTERINGS = {"kmeans": _kmeans, "gmm": _gmm}
CLUSTERINGS = tuple(_CLUSTERINGS)
