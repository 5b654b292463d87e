"""Trials on sources: they fit the config, and never look at the target."""

import dataclasses

import numpy as np
import pytest

from benchmarks import made, source_trials
from benchmarks.made import load_config
from comen_jax import config as config_lib
from comen_jax.experiment import build


@pytest.mark.parametrize("name", source_trials.TRIALS)
def test_every_trial_is_a_config_that_can_be_trained(name):
  config = source_trials.make_config(name, "sketch", "D", "")
  config_lib.check(config)
  assert (config.target, config.data_dir) == ("sketch", "D")


def test_the_domain_that_is_left_out_is_not_read():
  config = load_config("digits")
  config.method, config.epochs = "deepall", 2
  config.stage_shares = (0.0, 0.5, 0.5)
  config.batch_size = config.eval_batch_size = 8
  config.store_size = config.image_size = 16
  dataset = made.dataset(made.images(64, 16), 4)
  experiment = build(config, dataset)
  log = source_trials.train(experiment)
  assert [record["stage"] for record in log] == ["train", "train"]
  assert all(0 <= record["val_accuracy"] <= 1 for record in log)
  images = dataset.images.copy()
  images[experiment.split.target_rows] = 0
  other = dataclasses.replace(dataset, images=images)
  assert source_trials.train(experiment._replace(dataset=other)) == log
  images = np.zeros_like(images)  # The sources do matter.
  other = dataclasses.replace(dataset, images=images)
  assert source_trials.train(experiment._replace(dataset=other)) != log


def test_the_table_averages_over_the_domains_that_were_left_out():
  run = lambda trial, accuracy: {
    "trial": trial,
    "log": [
      {"val_accuracy": 0.1},
      {"val_accuracy": accuracy, "val_loss": 1.0, "loss": 0.4},
    ],
  }
  runs = [run("comen_picture_8", 0.5), run("comen_picture_8", 0.7)]
  (row,) = source_trials.table(runs).rows
  assert row["trial"] == "comen_picture_8" and row["runs"] == 2
  assert row["val_accuracy"] == pytest.approx(0.6)
  assert row["loss_cls"] == pytest.approx(0.4)  # The only loss is L_cls.
  assert "domain_agreement" not in row
