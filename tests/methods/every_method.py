"""The methods of the registry as parameters of tests, and tiny experiments."""

import jax
import pytest
from conftest import load_config
from golden_helpers import SIZE

from comen_jax import config as config_lib
from comen_jax import sharding
from comen_jax.data.dataset import Dataset
from comen_jax.experiment import Experiment, build
from comen_jax.methods.registry import METHODS
from comen_jax.nn.registry import BACKBONES

NAMES = tuple(METHODS)
LABELLED = tuple(n for n in NAMES if METHODS[n].domain_labels)
# ResNet-34 and 50 are the same code as ResNet-18.
SIZES = {"resnet18": 32, "alexnet": BACKBONES["alexnet"].least_size}
# RSC mutes positions: of 16 pixels the last map keeps a single one.
DIGITS_SIZES = {"rsc": 32}


def each(names: tuple[str, ...]) -> list:
  """Parameters; to discover domains takes long, and has tests of its own."""
  slow = [name for name in names if METHODS[name].norm == "sdnorm"]
  return [
    pytest.param(name, marks=[pytest.mark.slow] if name in slow else [])
    for name in names
  ]


def supporting(backbone: str) -> tuple[str, ...]:
  entries = {n: METHODS[n].backbones or (backbone,) for n in NAMES}
  return tuple(n for n in NAMES if backbone in entries[n])


def make_experiment(
  name: str,
  dataset: Dataset,
  devices: int = 1,
  backbone: str = "digits_cnn",
) -> Experiment:
  digits = backbone == "digits_cnn"
  config = load_config("digits" if digits else "pacs")
  config.method, config.backbone, config.pretrained = name, backbone, ""
  config.augment = "none"
  config.store_size = SIZE
  config.image_size = (
    DIGITS_SIZES.get(name, SIZE) if digits else SIZES[backbone]
  )
  config.batch_size = config.eval_batch_size = 24
  config.epochs, config.stage_shares = 3, (0.34, 0.33, 0.33)
  config.comen.pretrain_steps = 10
  config_lib.check(config)
  return build(config, dataset, sharding.make(jax.devices()[:devices]))
