"""Every wrong value is one line with exit code 2, before data are read."""

import commands
import pytest
from conftest import ROOT, load_config

from comen_jax import config as config_lib
from comen_jax import ranges
from comen_jax.data import registry
from comen_jax.data.recipes import RECIPES
from comen_jax.data.views import NORMALISATIONS
from comen_jax.errors import UserError
from comen_jax.methods.comen.clustering import CLUSTERINGS
from comen_jax.methods.comen.options import FORMS, STYLE_VIEWS
from comen_jax.nn.backbone import STYLE_FROM
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.registry import BACKBONES

CONFIG = f"--config={ROOT / 'configs' / 'digits.py'}"
CONFIGS = [p.stem for p in sorted((ROOT / "configs").glob("*.py"))]
POSITIVE = "give a finite number above 0"
DECAY = "give a number from 0 to below 1"
NOT_NEGATIVE = "give a finite number, 0 or more"
# A flag, and the line that answers it.
WRONG = {
  "learning_rate=-1": f"learning_rate=-1.0: {POSITIVE}",
  "learning_rate=0": f"learning_rate=0.0: {POSITIVE}",
  "learning_rate=nan": f"learning_rate=nan: {POSITIVE}",
  "learning_rate=inf": f"learning_rate=inf: {POSITIVE}",
  "learning_rate=1e300": f"learning_rate=1e+300: {POSITIVE}",
  "momentum=2": f"momentum=2.0: {DECAY}",
  "momentum=-1": f"momentum=-1.0: {DECAY}",
  "momentum=nan": f"momentum=nan: {DECAY}",
  "weight_decay=-1": f"weight_decay=-1.0: {NOT_NEGATIVE}",
  "weight_decay=nan": f"weight_decay=nan: {NOT_NEGATIVE}",
  "lr_drops=(2, 3)": "lr_drops=(2, 3): give rising fractions between 0 and 1",
  "lr_drops=(.8, .4)": "lr_drops=(0.8, 0.4): give rising fractions",
  "lr_drops=foo": "lr_drops=('foo',): give rising fractions",
  "lr_factor=-1": "lr_factor=-1.0: give a number above 0, at most 1",
  "lr_factor=10": "lr_factor=10.0: give a number above 0, at most 1",
  "comen.temperature=0": f"comen.temperature=0.0: {POSITIVE}",
  "comen.temperature=-1": f"comen.temperature=-1.0: {POSITIVE}",
  "comen.temperature=1e-60": f"comen.temperature=1e-60: {POSITIVE}",
  "comen.prototype_decay=2": "comen.prototype_decay=2.0: give a finite number",
  "comen.affinity_threshold=5": "comen.affinity_threshold=5.0: give a finite"
  " number, -1 to 1",
  "comen.entropy_weight=-5": f"comen.entropy_weight=-5.0: {NOT_NEGATIVE}",
  "comen.pretrain_steps=-1": "comen.pretrain_steps=-1: give a whole number, 1",
  "comen.portion=0": "comen.portion=0.0: give a number above 0, at most 1",
  "comen.clustering=foo": "comen.clustering='foo': choose one of",
  "sdnorm.epsilon=-1": f"sdnorm.epsilon=-1.0: {POSITIVE}",
  "sdnorm.epsilon=0": f"sdnorm.epsilon=0.0: {POSITIVE}",
  "sdnorm.momentum=2": f"sdnorm.momentum=2.0: {DECAY}",
  "sdnorm.min_mass=-1": f"sdnorm.min_mass=-1.0: {NOT_NEGATIVE}",
  "image_size=7": "image_size=7 is too small for digits_cnn: give 16 or more",
  "image_size=0": "image_size=0: give a whole number, 1 to 4096",
  "dtype=float128": "dtype='float128': give one of float32, bfloat16",
  "dtype=int8": "dtype='int8': give one of float32, bfloat16",
  "dtype=float64": "dtype='float64': give one of float32, bfloat16",
  "normalise=foo": "normalise='foo': choose one of half, imagenet",
  "augment=foo": "augment='foo': choose one of none",
  "stage_shares=(.5, .5)": "stage_shares=(0.5, 0.5): COMEN has three stages",
  "stage_shares=(.5, nan, .5)": "stage_shares=",
  "logging.every=0": "logging.every=0: give a whole number, 1 or more",
  "logging.every=-1": "logging.every=-1: give a whole number, 1 or more",
  "num_domains=0": "num_domains=0: give a whole number, 1 to 1000",
  "epochs=0": "epochs=0: give a whole number, 1 to 100000",
  "seed=99999999999999999999": "seed=99999999999999999999: give a whole number,"
  " 0 to 4294967295",
}


@pytest.mark.parametrize("flag", WRONG)
@pytest.mark.parametrize("command", ["main", "sweep"])
def test_a_wrong_value_is_one_line_before_data_are_read(
  flag, command, tmp_path
):
  code, out, err = commands.run(
    f"comen_jax.{command}", CONFIG, f"--config.{flag}",
    # Whoever reads data says that there are none.
    "--config.data_dir=nowhere", f"--workdir={tmp_path / 'run'}",
  )  # fmt: skip
  assert err.startswith(f"error: {WRONG[flag]}"), err
  assert err.count("\n") == 1, err
  assert (code, out) == (2, "")
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [*CONFIGS, "digits:paper", "pacs:quick"])
def test_the_table_has_every_key_and_allows_the_values_of_the_configs(name):
  config = load_config(name)
  assert dict(ranges.flat(config)).keys() == ranges.RULES.keys()
  ranges.check(config)


def test_a_key_too_many_and_a_key_too_few_are_named():
  config = load_config("digits")
  with config.unlocked():
    config.learning_rat = 0.1
    with pytest.raises(UserError, match=r"learning_rat=0\.1: .* no such key"):
      ranges.check(config)
    del config.learning_rat
    del config.sdnorm.epsilon
  with pytest.raises(UserError, match=r"config has no sdnorm\.epsilon"):
    ranges.check(config)


def test_a_block_of_another_method_is_left_to_that_method():
  config = load_config("digits")
  with config.unlocked():
    config.mine = {"anything": -1}
  ranges.check(config)


def test_an_augmentation_may_be_written_out():
  config = load_config("digits")
  with config.unlocked(), config.ignore_type():
    config.augment = {"flip": 0.5}
  config_lib.check(config)
  config.augment.flip = 2.0
  with pytest.raises(UserError, match=r"augment\.flip=2\.0"):
    config_lib.check(config)


def test_help_lists_the_names_that_the_registries_know():
  known = {
    "norm": DigitsCNN.norms,
    "backbone": BACKBONES,
    "augment": RECIPES,
    "dataset": registry.NAMES,
    "normalise": NORMALISATIONS,
    "comen.prototype_form": FORMS,
    "comen.clustering": CLUSTERINGS,
    "comen.style_from": STYLE_FROM,
    "comen.style_view": STYLE_VIEWS,
  }
  for key, names in known.items():
    listed = ranges.RULES[key].allowed.removeprefix("one of ").partition(";")[0]
    assert listed.split(", ") == list(names), key
