"""Data sets by name, and leaving one domain out."""

import numpy as np
import pytest

from comen_jax.data import mini_digits, registry
from comen_jax.data.dataset import TRAIN, VAL, Dataset, leave_one_out
from comen_jax.data.mini_digits import generator
from comen_jax.errors import UserError

DOMAINS = ("photo", "sketch", "cartoon")
N = 60


def _dataset():
  rng = np.random.default_rng(0)
  return Dataset(
    name="tiny",
    images=np.zeros((N, 2, 2, 3), np.uint8),
    labels=rng.integers(0, 4, N, np.int32),
    domains=rng.integers(0, 3, N, np.int32),
    splits=rng.integers(0, 2, N, np.uint8),
    class_names=tuple("abcd"),
    domain_names=DOMAINS,
    manifest="",
    default_target="sketch",
  )


@pytest.mark.parametrize("target", DOMAINS)
def test_the_target_is_left_out_of_the_sources(target):
  dataset = _dataset()
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


def test_the_target_is_tested_on_both_of_its_splits():
  dataset = _dataset()
  split = leave_one_out(dataset, "photo")
  assert set(dataset.splits[split.target_rows]) == {TRAIN, VAL}


def test_rows_are_sorted():
  split = leave_one_out(_dataset(), "photo")
  for rows in (split.train_rows, split.val_rows, split.target_rows):
    assert rows.dtype == np.int64
    assert (np.diff(rows) > 0).all()


def test_no_target_is_the_default_one():
  split = leave_one_out(_dataset(), "")
  assert split.target == "sketch"
  assert split.sources == ("photo", "cartoon")


def test_an_unknown_target_is_told_the_names():
  with pytest.raises(UserError, match="'sketches'") as error:
    leave_one_out(_dataset(), "sketches")
  assert "photo, sketch, cartoon" in str(error.value)
  assert "tiny" in str(error.value)


@pytest.fixture
def calls(monkeypatch, tmp_path):
  """A cache of its own, and eight mini digits where 6,800 take seconds."""
  monkeypatch.setenv("COMEN_JAX_CACHE", str(tmp_path))
  made = []

  def generate():
    made.append(None)
    count = 8
    return generator.Pictures(
      images=np.arange(count * 32 * 32 * 3, dtype=np.uint32)
      .astype(np.uint8)
      .reshape(count, 32, 32, 3),
      labels=np.arange(count, dtype=np.int32),
      domains=np.arange(count, dtype=np.int32) // 2,
      splits=np.arange(count, dtype=np.uint8) % 2,
      names=[f"{i}.png" for i in range(count)],
    )

  monkeypatch.setattr(generator, "generate", generate)
  return made


def test_digits_without_a_data_dir_are_mini_digits_and_say_so(calls):
  dataset = registry.load("digits_dg", "", 32)
  assert dataset.name == "mini_digits"
  assert "mini digits" in dataset.notice
  assert "data_dir" in dataset.notice
  assert "\n" not in dataset.notice


def test_mini_digits_by_name_need_no_notice(calls):
  dataset = registry.load("mini_digits", "", 32)
  assert dataset.name == "mini_digits"
  assert dataset.notice == ""
  asked = registry.load("digits_dg", "", 32)
  assert asked.manifest == dataset.manifest


def test_mini_digits_are_rows_like_any_other(calls):
  dataset = registry.load("mini_digits", "", 32)
  made = generator.generate()
  np.testing.assert_array_equal(dataset.images, made.images)
  np.testing.assert_array_equal(dataset.labels, made.labels)
  np.testing.assert_array_equal(dataset.domains, made.domains)
  np.testing.assert_array_equal(dataset.splits, made.splits)
  assert dataset.class_names == mini_digits.CLASSES
  assert dataset.domain_names == mini_digits.DOMAINS
  assert leave_one_out(dataset, "").target == mini_digits.DEFAULT_TARGET


def test_mini_digits_are_made_once_for_each_version(calls, monkeypatch):
  registry.load("mini_digits", "", 32)
  registry.load("digits_dg", "", 32)
  assert len(calls) == 1
  monkeypatch.setattr(mini_digits, "VERSION", "next")
  registry.load("mini_digits", "", 32)
  assert len(calls) == 2


@pytest.mark.parametrize("name", ["mini_digits", "digits_dg"])
def test_mini_digits_of_another_size_are_refused(calls, name):
  with pytest.raises(UserError, match=r"store_size=64.*32"):
    registry.load(name, "", 64)
  assert not calls


def test_an_unknown_data_set_is_told_the_names():
  with pytest.raises(UserError, match="'imagenet'") as error:
    registry.load("imagenet", "", 32)
  for name in ("digits_dg", "mini_digits"):
    assert name in str(error.value)
