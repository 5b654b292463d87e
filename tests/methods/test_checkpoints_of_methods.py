"""A method that prepares before every epoch, stopped and started again."""

from functools import partial

import jax
import pytest
from conftest import load_config
from golden_helpers import SIZE, made_dataset
from test_main import measured, read_log, stops_at

from comen_jax import sharding, stopping, train
from comen_jax.errors import Stopped
from comen_jax.experiment import build


@pytest.fixture
def config(monkeypatch, plain_convolutions):
  """MMLD in two epochs of two steps, on one device."""
  one = sharding.make(jax.devices()[:1])
  made = partial(build, dataset=made_dataset(), shardings=one)
  monkeypatch.setattr(train, "build", made)
  config = load_config("digits")
  config.method, config.epochs, config.stage_shares = "mmld", 2, (0, 0.5, 0.5)
  # So many that the clusters depend on the network and on the key.
  config.num_domains = 20
  config.store_size = config.image_size = SIZE
  config.batch_size = config.eval_batch_size = 24
  config.logging.tensorboard = False
  return config


def test_mmld_stopped_in_a_prepare_and_in_an_epoch_ends_with_the_same_result(
  config, tmp_path, monkeypatch
):
  """Stops two starts at a check: one is before every batch, one after a unit.

  A prepare has three batches, an epoch two to train on and one to validate on.
  The first stop is in the second prepare, which is then done again. The second
  stop is in the epoch after it, which goes on with the clusters that it has.
  In that epoch they change the network: before, the adversary has no weight.
  """
  never, often = tmp_path / "never", tmp_path / "often"
  train.train_and_evaluate(config, str(never))
  found = []
  for number in (4 + 4 + 2, 4 + 2):
    with monkeypatch.context() as patch, pytest.raises(Stopped) as caught:
      patch.setattr(stopping, "check", stops_at(number))
      train.train_and_evaluate(config, str(often))
    found.append((len(read_log(often)), caught.value.after))
  assert found == [(2, " after step 2"), (3, " after step 3")]
  train.train_and_evaluate(config, str(often))
  assert measured(often) == measured(never)
  # Accuracies are coarse; the losses of the log are not.
  log = read_log(often)
  assert log == read_log(never)
  assert [record["kind"] for record in log] == ["prepare", "epoch"] * 2
  assert log[2]["kept_domains"] < 1
