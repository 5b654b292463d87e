"""Classes that the target has but no source."""

import dataclasses

import numpy as np
import pytest

from comen_jax.data import coverage
from comen_jax.data.dataset import TRAIN, VAL
from data.helpers import tiny_dataset

CLASSES = ("cat", "dog", "yak")


def make(rows, domains="abc", default="", classes=CLASSES):
  """A data set with `count` rows for each (domain, class, split, count)."""
  table = np.array([r[:3] for r in rows for _ in range(r[3])])
  dataset = tiny_dataset(
    table[:, 1],
    table[:, 0],
    table[:, 2],
    class_names=classes,
    domain_names=tuple(domains),
  )
  return dataclasses.replace(dataset, default_target=default)


FULL = [(d, k, TRAIN, 5) for d in range(3) for k in range(3)]


def test_complete_data_give_no_warning():
  assert coverage.warnings(make(FULL)) == []


def test_a_class_of_one_domain_costs_its_share_of_that_target():
  rows = [r for r in FULL if r[:2] not in ((0, 2), (1, 2))]
  (line,) = coverage.warnings(make(rows))
  assert line.startswith("with target c, no source has training images of yak:")
  assert "5 of the 15 target images" in line
  assert line.endswith("accuracy is at most 66.6 %")


def test_validation_images_train_nothing():
  rows = [r for r in FULL if r[:2] not in ((0, 2), (1, 2))]
  rows.append((1, 2, VAL, 5))
  (line,) = coverage.warnings(make(rows))
  assert "target c" in line


def test_all_targets_are_named_unless_there_is_a_default():
  rows = [(0, 0, TRAIN, 2), (1, 1, TRAIN, 2), (1, 0, TRAIN, 2)]
  rows += [(0, 2, TRAIN, 1)]
  lines = coverage.warnings(make(rows, "ab"))
  assert [line.split(",")[0] for line in lines] == [
    "with target a",
    "with target b",
  ]
  (line,) = coverage.warnings(make(rows, "ab", default="b"))
  assert line.startswith("with target b, no source has training images of dog")


@pytest.mark.parametrize(("count", "bound"), [(1, "99.9 %"), (1999, "50.0 %")])
def test_the_bound_is_never_rounded_up(count, bound):
  rows = [(0, 0, TRAIN, 1), (1, 0, TRAIN, 1999), (1, 1, TRAIN, count)]
  (line,) = coverage.warnings(make(rows, "ab", default="b"))
  assert bound in line


def test_many_classes_are_counted():
  classes = tuple(f"k{i}" for i in range(9))
  rows = [(0, 0, TRAIN, 1), *((1, k, TRAIN, 1) for k in range(9))]
  (line,) = coverage.warnings(make(rows, "ab", "b", classes))
  assert "k1, k2, k3, k4, k5 and 3 more:" in line
