"""Clusters of style, and F_d taught to find them."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from comen_jax.methods.comen import clustering, discovery
from comen_jax.nn.style import DomainPredictor

M, N, WIDTH = 3, 150, 12
ALL = np.arange(N)
TRUE = np.random.default_rng(0).integers(0, M, N)


def _blobs(spread=0.2):
  rng = np.random.default_rng(1)
  centres = rng.normal(size=(M, WIDTH)) * 3
  return centres[TRUE] + rng.normal(size=(N, WIDTH)) * spread


def _same_but_for_names(a, b):
  pairs = set(zip(a.tolist(), b.tolist()))
  return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("method", clustering.CLUSTERINGS)
def test_separated_blobs_are_found(method):
  labels = clustering.cluster(_blobs(), ALL, M, method, seed=0)
  assert labels.shape == (N,) and labels.dtype == np.int32
  assert set(labels.tolist()) == set(range(M))
  assert _same_but_for_names(labels, TRUE)


@pytest.mark.parametrize("method", clustering.CLUSTERINGS)
def test_clusters_depend_on_the_seed_alone(method):
  # One cloud without structure: whatever the start leads to is found.
  style = np.random.default_rng(2).normal(size=(N, WIDTH)).astype(np.float32)
  first = clustering.cluster(style, ALL, M, method, seed=5)
  np.random.seed(123)
  again = clustering.cluster(style.astype(np.float64), ALL, M, method, seed=5)
  np.testing.assert_array_equal(first, again)
  other = clustering.cluster(style, ALL, M, method, seed=6)
  assert (other != first).any()


@pytest.mark.parametrize("method", clustering.CLUSTERINGS)
def test_clusters_of_a_portion_label_all_images(method):
  labels = clustering.cluster(_blobs(), ALL[::3], M, method, seed=0)
  assert _same_but_for_names(labels, TRUE)


def test_a_mixture_tells_domains_of_unequal_spread_where_kmeans_does_not():
  rng = np.random.default_rng(3)
  wide = rng.integers(0, 2, N)
  spread = np.where(wide, 1.5, 0.1)[:, None]
  style = 2.0 * wide[:, None] + spread * rng.normal(size=(N, 2))

  def errors(method):
    found = clustering.cluster(style, ALL, 2, method, seed=0)
    return min((found != wide).sum(), (found == wide).sum())

  assert errors("gmm") < 5
  assert errors("kmeans") > 10


class _Sources:
  """Rows 0 to N - 1 of which every fifth is kept for validation."""

  rows = np.arange(N)
  train_rows = np.flatnonzero(np.arange(N) % 5)
  val_rows = np.flatnonzero(np.arange(N) % 5 == 0)

  def batches(self, rows):
    for start in range(0, len(rows), 32):
      padded = np.zeros(32, int)
      chunk = rows[start : start + 32]
      padded[: len(chunk)] = chunk
      yield SimpleNamespace(row=padded, count=len(chunk))


class _FeatureStep:
  """The style of a row is its blob; a training view shakes it a little."""

  def __init__(self):
    self.seen = {False: [], True: []}

  def __call__(self, state, batch, key, training_view):
    self.seen[training_view] += batch.row[: batch.count].tolist()
    # Far from standard: whoever forgets to standardise fails.
    style = 1000 + 50 * _blobs()[batch.row]
    if training_view:
      style = style + np.asarray(jax.random.normal(key, style.shape))
    return SimpleNamespace(style=style.astype(np.float32))


def _pretrain(
  step=None, portion=1.0, num_steps=60, num_views=2, seed=0, before=None
):
  return discovery.pretrain_predictor(
    None,
    _Sources(),
    step or _FeatureStep(),
    jax.random.key(seed),
    predictor=DomainPredictor(M, hidden=8),
    how=discovery.Pretraining("kmeans", portion, num_steps, num_views),
    before=before,
  )


@pytest.fixture(scope="module")
def found():
  return _pretrain()


@pytest.fixture(scope="module")
def half():
  """A portion of one half, hardly taught, and which rows it looked at."""
  step = _FeatureStep()
  return _pretrain(step, portion=0.5, num_steps=1), step.seen


def test_pretraining_teaches_the_clusters(found):
  assert found.agreement > 0.95
  style = 1000 + 50 * _blobs()
  predictor = DomainPredictor(M, hidden=8)
  domains = found.probs.argmax(axis=1)
  assert _same_but_for_names(domains, TRUE)  # Validation rows among them.
  np.testing.assert_array_equal(domains, found.labels)

  # As the backbone holds it: F_d standardises for itself.
  variables = {
    "params": found.params,
    "batch_stats": {"mean": found.mean, "std": found.std},
  }
  logits = predictor.apply(variables, style.astype(np.float32))
  np.testing.assert_array_equal(np.asarray(logits).argmax(axis=1), domains)


def test_pretraining_is_bit_equal_when_repeated(found):
  np.random.seed(9)
  jax.tree.map(np.testing.assert_array_equal, found, _pretrain())


def test_style_is_standardised_as_the_clustered_images_are(found):
  style = 1000 + 50 * _blobs()[_Sources.train_rows]
  np.testing.assert_allclose(found.mean, style.mean(axis=0), rtol=1e-5)
  np.testing.assert_allclose(found.std, style.std(axis=0), rtol=1e-4)
  assert found.mean.dtype == found.std.dtype == np.float32


def test_an_untaught_predictor_shows_in_its_agreement(half):
  assert half[0].agreement < 0.9


def test_only_a_portion_of_the_training_rows_teaches(half):
  # Half of 120; a fifth of it is held out to see what was learned.
  taught = half[1][True]
  assert len(taught) == 2 * 48 and len(set(taught)) == 48  # Two views of each.
  assert np.isin(taught, _Sources.train_rows).all()


def test_another_key_draws_another_portion(half):
  step = _FeatureStep()
  _pretrain(step, portion=0.5, num_steps=1, seed=1)
  assert step.seen[True] != half[1][True]


def test_a_dead_filter_does_not_blow_up_its_noise():
  style = np.random.default_rng(0).normal(size=(40, 6))
  style[:, 1] = 1e-9 * style[:, 1]  # A mean that never moves.
  style[:, 5] = 0.2  # A constant deviation.
  mean, std = discovery.statistics(style)
  assert np.abs((style - mean) / std)[:, [1, 5]].max() < 1e-6
  alive = [0, 2, 3, 4]
  np.testing.assert_allclose(std[alive], style.std(axis=0)[alive])


def test_noise_makes_the_predictor_unsure_between_domains():
  centres = [_blobs()[m == TRUE].mean(axis=0) for m in range(M)]
  between = 1000 + 50 * (centres[0] + centres[1])[None] / 2

  def largest(noise):
    how = discovery.Pretraining("kmeans", 1.0, 300, noise=noise)
    predictor = DomainPredictor(M, hidden=8)
    found = discovery.pretrain_predictor(
      None, _Sources(), _FeatureStep(), jax.random.key(0),
      predictor=predictor, how=how,
    )  # fmt: skip
    assert found.agreement > 0.95
    variables = {
      "params": found.params,
      "batch_stats": {"mean": found.mean, "std": found.std},
    }
    logits = predictor.apply(variables, between.astype(np.float32))
    return float(jax.nn.softmax(logits).max())

  assert largest(2.0) < largest(0.0)


def test_an_empty_cluster_is_said_and_the_images_are_clustered_again(
  monkeypatch,
):
  seeds = []

  def cluster(style, portion, num_domains, method, seed):
    seeds.append(seed)
    return (TRUE if len(seeds) == 3 else TRUE % 2).astype(np.int32)

  monkeypatch.setattr(clustering, "cluster", cluster)
  found = _pretrain(num_steps=1)
  np.testing.assert_array_equal(found.labels, TRUE)
  assert np.diff(seeds).tolist() == [1, 1]
  assert (
    found.warnings == ("cluster 2 has 0 of 150 images: clustering again",) * 2
  )


def test_of_clusterings_that_all_have_a_small_cluster_the_best_is_taken(
  monkeypatch,
):
  tries = []

  def cluster(style, portion, num_domains, method, seed):
    labels = (TRUE % 2).astype(np.int32)
    labels[: 1 if len(tries) == 1 else 0] = 2
    tries.append(labels)
    return labels

  monkeypatch.setattr(clustering, "cluster", cluster)
  found = _pretrain(num_steps=1)
  assert len(tries) == 4
  np.testing.assert_array_equal(found.labels, tries[1])
  assert found.warnings[-1].endswith("lower num_domains")


def test_clusters_are_numbered_like_the_domains_before():
  for numbers in ([2, 0, 1], [1, 2, 0]):
    before = np.array(numbers)[TRUE]
    found = _pretrain(num_steps=1, before=before)
    np.testing.assert_array_equal(found.labels, before)


def test_without_training_views_the_evaluation_view_teaches():
  step = _FeatureStep()
  found = _pretrain(step, num_views=0)
  assert found.agreement > 0.95
  assert not step.seen[True]
