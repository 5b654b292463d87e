"""Batches: which rows, in which order, on which devices."""

import jax
import numpy as np
import pytest

from comen_jax import sharding
from comen_jax.data import batches
from data.helpers import tiny_dataset

N = 50
# Not all rows, and not consecutive: a batch must not number them itself.
ROWS = np.flatnonzero(np.arange(N) % 5)  # 40 rows, 0 not among them.


@pytest.fixture(scope="module")
def dataset():
  rng = np.random.default_rng(0)
  return tiny_dataset(
    images=rng.integers(0, 256, (N, 2, 2, 3), np.uint8),
    labels=rng.integers(0, 10, N),
    domains=np.zeros(N),
    splits=np.zeros(N),
  )


@pytest.fixture(scope="module")
def shardings():
  return sharding.make()


def _epoch(dataset, rows=ROWS, batch_size=16, seed=0, epoch=0, devices=None):
  return list(
    batches.train_batches(
      dataset,
      rows,
      batch_size=batch_size,
      seed=seed,
      epoch=epoch,
      sharding=sharding.make(devices).rows,
    )
  )


def _eval(dataset, shardings, rows, batch_size):
  return list(
    batches.eval_batches(
      dataset, rows, batch_size=batch_size, sharding=shardings.rows
    )
  )


def _rows(epoch):
  return np.concatenate([b.row for b in epoch])


def _assert_matches(batch, dataset):
  rows = np.asarray(batch.row)
  np.testing.assert_array_equal(batch.image, dataset.images[rows])
  np.testing.assert_array_equal(batch.label, dataset.labels[rows])
  types = [x.dtype for x in (batch.image, batch.label, batch.row, batch.mask)]
  assert types == [np.uint8, np.int32, np.int32, np.float32]


def test_order_depends_only_on_seed_and_epoch(dataset):
  want = _rows(_epoch(dataset, seed=3, epoch=7))
  np.random.seed(1)  # The global generator must not matter.
  np.testing.assert_array_equal(_rows(_epoch(dataset, seed=3, epoch=7)), want)
  one = _epoch(dataset, seed=3, epoch=7, devices=jax.devices()[:1])
  np.testing.assert_array_equal(_rows(one), want)
  smaller = _epoch(dataset, seed=3, epoch=7, batch_size=8)
  np.testing.assert_array_equal(_rows(smaller)[:32], want)


@pytest.mark.parametrize(("seed", "epoch"), [(3, 8), (4, 7), (7, 3)])
def test_another_seed_or_epoch_gives_another_order(dataset, seed, epoch):
  one = _rows(_epoch(dataset, seed=3, epoch=7))
  other = _rows(_epoch(dataset, seed=seed, epoch=epoch))
  assert (one != other).any()


def test_an_epoch_repeats_no_row_and_drops_the_rest(dataset):
  for epoch in range(3):
    got = _epoch(dataset, epoch=epoch)
    assert [b.row.shape for b in got] == [(16,), (16,)]  # 8 dropped.
    rows = _rows(got)
    assert len(set(rows.tolist())) == 32
    assert np.isin(rows, ROWS).all()
    assert all(np.asarray(b.mask).all() for b in got)


def test_whole_batches_cover_every_row(dataset):
  rows = _rows(_epoch(dataset, batch_size=8))
  np.testing.assert_array_equal(np.sort(rows), ROWS)
  assert (rows != ROWS).any()


def test_fewer_rows_than_a_batch_give_no_training_step(dataset):
  assert _epoch(dataset, rows=ROWS[:15]) == []


def test_training_batches_hold_the_images_and_classes_of_their_rows(dataset):
  for batch in _epoch(dataset):
    _assert_matches(batch, dataset)


@pytest.mark.parametrize("count", [40, 33, 16, 5])
def test_evaluation_covers_all_rows_in_order(dataset, shardings, count):
  rows = ROWS[:count]
  got = _eval(dataset, shardings, rows, 16)
  assert len(got) == -(-count // 16)
  assert all(b.row.shape == (16,) for b in got)
  mask = np.concatenate([b.mask for b in got])
  np.testing.assert_array_equal(mask, np.arange(len(mask)) < count)
  np.testing.assert_array_equal(_rows(got)[mask == 1], rows)
  for batch in got:
    _assert_matches(batch, dataset)


def test_evaluation_keeps_the_given_order(dataset, shardings):
  rows = np.array([7, 3, 3, 41, 0])
  (batch,) = _eval(dataset, shardings, rows, 8)
  np.testing.assert_array_equal(np.asarray(batch.row)[:5], rows)
  np.testing.assert_array_equal(batch.mask, [1, 1, 1, 1, 1, 0, 0, 0])


def test_every_device_holds_its_share_of_a_batch(dataset, shardings):
  assert jax.device_count() == 8
  whole = _epoch(dataset)[0]
  padded = _eval(dataset, shardings, ROWS[:5], 16)[0]
  for batch in (whole, padded):
    for array in jax.tree.leaves(batch):
      assert array.sharding.is_equivalent_to(shardings.rows, array.ndim)
      assert len(array.addressable_shards) == 8
      assert {s.data.shape[0] for s in array.addressable_shards} == {2}
