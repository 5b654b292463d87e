"""Classification metrics, and latent domains against true ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.metrics import (
  EvalMetrics,
  collapse_warning,
  effective_number,
  latent_domains,
)


@pytest.mark.parametrize(
  ("probs", "number"),
  [
    ([1.0], 1),
    ([0.0, 1.0, 0.0], 1),
    ([0.25] * 4, 4),
    ([0.5, 0.5, 0.0], 2),
    # H = .5 log 2 + .5 log 4 = 1.5 log 2.
    ([0.5, 0.25, 0.25], 2**1.5),
  ],
)
def test_the_effective_number_of_domains_by_hand(probs, number):
  assert effective_number(np.array(probs)) == pytest.approx(number, rel=1e-12)


# Argmax: three images in domain 0, one in domain 1, none in domain 2.
PROBS = np.array(
  [[0.8, 0.1, 0.1], [0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.1, 0.9, 0.0]]
)


def test_latent_domains_by_hand():
  report = latent_domains(PROBS, np.array([0, 0, 1, 1]), np.array([5, 5, 5, 9]))
  assert report["domain_sizes"] == [3, 1, 0]
  mean = np.array([0.5, 0.375, 0.125])
  want = 1 / np.prod(mean**mean)
  assert report["effective_domains"] == pytest.approx(want)
  assert report["nmi_class"] == pytest.approx(1)  # The same but for names.
  # Joint (true, found): 1/2 (0, 0), 1/4 (1, 0), 1/4 (1, 1).
  shared = np.log(4 / 3) / 2 + np.log(2 / 3) / 4 + np.log(2) / 4
  entropy = np.log(4) - 0.75 * np.log(3)
  nmi = shared / ((np.log(2) + entropy) / 2)
  assert report["nmi_domain"] == pytest.approx(nmi)


def test_independent_domains_share_no_information():
  probs = np.eye(2)[[0, 0, 1, 1]]
  report = latent_domains(probs, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
  assert report["nmi_domain"] == pytest.approx(0, abs=1e-12)
  assert report["nmi_class"] == pytest.approx(1)


def test_one_true_domain_has_nothing_to_agree_with():
  report = latent_domains(PROBS, np.full(4, 2), np.array([5, 5, 5, 9]))
  assert "nmi_domain" not in report
  assert report["domain_sizes"] == [3, 1, 0]
  assert report["nmi_class"] == pytest.approx(1)


@pytest.mark.parametrize(
  ("effective", "sizes"),
  [
    (1.0, [100, 0, 0]),
    (2.9, [500, 500, 1]),  # One is as good as gone.
    (1.99, [40, 30, 30]),  # Probabilities that are nearly of one domain.
    (1.49, [50, 50]),
  ],
)
def test_merging_domains_are_warned_of(effective, sizes):
  warning = collapse_warning(effective, sizes)
  assert str(sizes) in warning
  assert f"{effective:.2f} of {len(sizes)}" in warning
  assert "\n" not in warning


@pytest.mark.parametrize(
  ("effective", "sizes"),
  [
    (3.0, [40, 30, 30]),
    (2.1, [70, 29, 1]),
    (1.6, [50, 50]),
    (1.0 - 1e-9, [100]),  # One was asked for; sums of p round.
  ],
)
def test_domains_that_differ_are_not_warned_of(effective, sizes):
  assert collapse_warning(effective, sizes) is None


@jax.jit
def _metrics(logits, labels, loss, mask):
  return EvalMetrics.single_from_model_output(
    logits=logits, labels=labels, loss=loss, mask=mask
  )


def test_padding_never_changes_accuracy_or_loss():
  rng = np.random.default_rng(0)
  count, size = 11, 8
  logits = rng.normal(size=(count, 3)).astype(np.float32)
  labels = rng.integers(0, 3, count, np.int32)
  loss = rng.random(count).astype(np.float32)
  accuracy = (logits.argmax(axis=1) == labels).mean()
  # Answers that would be right, and losses that would be felt, if they counted.
  for padding_loss in (0.0, 1e6, np.nan):
    total = EvalMetrics.empty()
    for start in range(0, count, size):
      rows = slice(start, start + size)
      missing = size - len(labels[rows])
      padding = np.eye(3, dtype=np.float32)[np.zeros(missing, int)]
      total = total.merge(
        _metrics(
          np.concatenate([logits[rows], padding]),
          np.concatenate([labels[rows], np.zeros(missing, np.int32)]),
          np.append(loss[rows], np.full(missing, padding_loss, np.float32)),
          (np.arange(size) < size - missing).astype(np.float32),
        )
      )
    got = jax.device_get(total).compute()  # On the host, as in a run.
    assert got["accuracy"] == pytest.approx(accuracy, rel=1e-6)
    assert got["loss"] == pytest.approx(loss.mean(dtype=float), rel=1e-6)
    assert total.accuracy.count == count


def test_batches_count_by_their_images_not_each_the_same():
  logits = jnp.array([[1.0, 0.0]] * 4)
  right, wrong = jnp.zeros(4, jnp.int32), jnp.ones(4, jnp.int32)
  one = jnp.array([1.0, 0.0, 0.0, 0.0])
  total = _metrics(logits, right, jnp.zeros(4), one)
  total = total.merge(_metrics(logits, wrong, jnp.ones(4), jnp.ones(4)))
  got = jax.device_get(total).compute()  # On the host, as in a run.
  assert got["accuracy"] == pytest.approx(1 / 5)
  assert got["loss"] == pytest.approx(4 / 5)
