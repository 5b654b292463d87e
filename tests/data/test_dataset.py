"""Leaving one domain out."""

import numpy as np
import pytest

from comen_jax.data.dataset import TRAIN, VAL, leave_one_out
from comen_jax.errors import UserError
from data.helpers import tiny_dataset

DOMAINS = ("photo", "sketch", "cartoon")
N = 60


@pytest.fixture(scope="module")
def dataset():
  rng = np.random.default_rng(0)
  return tiny_dataset(
    labels=rng.integers(0, 4, N),
    domains=rng.integers(0, 3, N),
    splits=rng.integers(0, 2, N),
    class_names=tuple("abcd"),
    domain_names=DOMAINS,
  )


@pytest.mark.parametrize("target", DOMAINS)
def test_the_target_is_left_out_of_the_sources(dataset, target):
  split = leave_one_out(dataset, target)
  domain = np.array(DOMAINS)[dataset.domains]
  for row in range(N):
    is_target = domain[row] == target
    assert (row in split.target_rows) == is_target
    is_train = dataset.splits[row] == TRAIN
    assert (row in split.train_rows) == (not is_target and is_train)
    assert (row in split.val_rows) == (not is_target and not is_train)
  assert split.target == target
  assert split.sources == tuple(d for d in DOMAINS if d != target)


def test_the_target_is_tested_on_both_of_its_splits(dataset):
  split = leave_one_out(dataset, "photo")
  assert set(dataset.splits[split.target_rows]) == {TRAIN, VAL}


def test_rows_are_sorted(dataset):
  split = leave_one_out(dataset, "photo")
  for rows in (split.train_rows, split.val_rows, split.target_rows):
    assert rows.dtype == np.int64
    assert (np.diff(rows) > 0).all()


def test_an_empty_target_means_the_default(dataset):
  split = leave_one_out(dataset, "")
  assert split.target == "cartoon"
  assert split.sources == ("photo", "sketch")


def test_the_error_for_an_unknown_target_lists_the_domains(dataset):
  with pytest.raises(UserError, match="'sketches'") as error:
    leave_one_out(dataset, "sketches")
  assert "photo, sketch, cartoon" in str(error.value)
  assert "tiny" in str(error.value)
