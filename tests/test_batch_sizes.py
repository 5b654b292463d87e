"""Batches that are larger than the data are lowered, and a line says so."""

import numpy as np
import pytest
from conftest import load_config

from comen_jax import config as config_lib
from comen_jax.data.dataset import Split
from comen_jax.errors import UserError


def made_split(train, val, target):
  rows = np.arange(train + val + target)
  return Split(("a",), "b", *np.split(rows, [train, train + val]))


@pytest.mark.parametrize(
  ("devices", "train", "evaluation"), [(1, 67, 77), (4, 64, 80), (8, 64, 80)]
)
def test_few_images_lower_both_batches(devices, train, evaluation):
  config = load_config("folder")
  sizes = config_lib.batch_sizes(config, made_split(67, 10, 23), devices)
  assert (sizes.train, sizes.evaluation) == (train, evaluation)
  assert sizes.lowered == {"batch_size": train}
  assert f"batch_size=128 is lowered to {train}" in sizes.notice
  assert f"eval_batch_size=512 is lowered to {evaluation}" in sizes.notice
  assert "67 source images" in sizes.notice
  assert "\n" not in sizes.notice


def test_enough_images_leave_the_batches_as_they_are():
  split = made_split(128, 20, 512)
  sizes = config_lib.batch_sizes(load_config("folder"), split, 8)
  assert sizes == (128, 512, {}, "")


def test_an_evaluation_batch_has_a_most_for_each_device():
  config = load_config("digits")
  config.eval_batch_size = 100_000_000
  sizes = config_lib.batch_sizes(config, made_split(10**6, 10, 10), 2)
  assert (sizes.train, sizes.evaluation) == (128, 4096)
  assert not sizes.lowered  # The result does not depend on it.


def test_fewer_images_than_devices_is_an_error():
  with pytest.raises(UserError, match=r"7 source images .* 8 devices"):
    config_lib.batch_sizes(load_config("folder"), made_split(7, 1, 1), 8)


def test_images_without_validation_are_an_error():
  with pytest.raises(UserError, match="a have no validation images"):
    config_lib.check_split(load_config("folder"), made_split(9, 0, 9))


def test_more_latent_domains_than_clustered_images_is_an_error():
  config = load_config("folder")
  config.num_domains = 4
  split = made_split(10, 1, 1)
  with pytest.raises(UserError, match=r"num_domains=4 is more than the 3"):
    config_lib.check_split(config, split)
  config.norm = "batch"  # Then domains are random, and nothing is clustered.
  config_lib.check_split(config, split)
  config.method = "deepall"
  config_lib.check_split(config, split)
