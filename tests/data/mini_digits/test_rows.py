"""Mini digits as a data set, drawn once."""

import numpy as np
import pytest

from comen_jax.data import mini_digits, registry
from comen_jax.data.dataset import leave_one_out
from comen_jax.data.mini_digits import generator
from comen_jax.errors import UserError


@pytest.fixture
def calls(monkeypatch, cache):
  """Draws eight images instead of 6,800, and counts the calls."""
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


def test_digits_dg_without_a_data_dir_gives_mini_digits_with_a_notice(calls):
  dataset = registry.load("digits_dg", "", 32)
  assert dataset.name == "mini_digits"
  assert "mini digits" in dataset.notice
  assert "data_dir" in dataset.notice
  assert "\n" not in dataset.notice


def test_mini_digits_by_name_give_no_notice(calls):
  dataset = registry.load("mini_digits", "", 32)
  assert dataset.name == "mini_digits"
  assert dataset.notice == ""
  asked = registry.load("digits_dg", "", 32)
  assert asked.manifest == dataset.manifest


def test_rows_equal_the_drawn_images(calls):
  dataset = registry.load("mini_digits", "", 32)
  made = generator.generate()
  np.testing.assert_array_equal(dataset.images, made.images)
  np.testing.assert_array_equal(dataset.labels, made.labels)
  np.testing.assert_array_equal(dataset.domains, made.domains)
  np.testing.assert_array_equal(dataset.splits, made.splits)
  assert dataset.class_names == mini_digits.CLASSES
  assert dataset.domain_names == mini_digits.DOMAINS
  assert leave_one_out(dataset, "").target == mini_digits.DEFAULT_TARGET


def test_mini_digits_are_drawn_once_for_each_version(calls, monkeypatch):
  registry.load("mini_digits", "", 32)
  registry.load("digits_dg", "", 32)
  assert len(calls) == 1
  monkeypatch.setattr(mini_digits, "VERSION", "next")
  registry.load("mini_digits", "", 32)
  assert len(calls) == 2


@pytest.mark.parametrize("name", ["mini_digits", "digits_dg"])
def test_another_size_is_refused(calls, name):
  with pytest.raises(UserError, match=r"store_size=64.*32"):
    registry.load(name, "", 64)
  assert not calls
