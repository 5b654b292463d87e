"""Options of methods: defaults in every config, rules, what a run records."""

import inspect
from typing import NamedTuple

import pytest
from conftest import load_config

from comen_jax import config as config_lib
from comen_jax import ranges, train
from comen_jax.errors import UserError
from comen_jax.methods import deepall, options, registry
from comen_jax.methods.base import Method
from comen_jax.nn import weights_file
from comen_jax.report import configs
from comen_jax.run.workdir import Workdir, check_config


class Mine(NamedTuple):
  """A method of these tests has one setting."""

  strength: float = 0.5


@pytest.mark.parametrize("name", options.OPTIONS)
def test_every_option_is_documented_and_its_default_is_allowed(name):
  made = options.OPTIONS[name]()
  for field, value in made._asdict().items():
    assert f"  {field}: " in inspect.getdoc(made), field
    ranges.check_value(f"{name}.{field}", value)


@pytest.mark.parametrize("name", options.OPTIONS)
def test_a_config_has_the_defaults_as_a_locked_block(name):
  config = load_config("digits")
  assert config[name].is_locked
  config.method = name
  made = options.OPTIONS[name](**config_lib.method_settings(config)[name])
  assert made == options.OPTIONS[name]()


def test_an_option_may_be_absent_but_not_wrong():
  config = load_config("digits")
  config.mixstyle.probability = 2.0
  with pytest.raises(UserError, match=r"mixstyle\.probability=2\.0: give"):
    ranges.check(config)
  with config.unlocked():
    del config.mixstyle
  ranges.check(config)
  with config.unlocked():
    config.mixstyle = {"strength": 1.0}
  with pytest.raises(UserError, match=r"mixstyle\.strength=1\.0: .*no such"):
    ranges.check(config)


def test_a_run_records_only_the_blocks_that_it_uses(tmp_path):
  config = load_config("digits")
  config.method = "mixstyle"
  found = options.recorded(config.to_dict())
  assert found["mixstyle"] == options.blocks()["mixstyle"]
  config.method = "deepall"
  found = options.recorded(config.to_dict())
  assert found.keys() & options.OPTIONS.keys() == set()
  assert "comen" in found  # As ever, so that old folders can be resumed.

  Workdir(str(tmp_path), config.to_dict(), {}).close()
  config.mixstyle.alpha = 0.3  # No matter to DeepAll.
  check_config(tmp_path, config.to_dict())
  Workdir(str(tmp_path), config.to_dict(), {}).close()
  config.method = "mixstyle"
  with pytest.raises(UserError, match=r"mixstyle\.alpha was '\(absent\)'"):
    check_config(tmp_path, config.to_dict())


def test_blocks_of_other_methods_do_not_split_a_row():
  config = load_config("digits")
  config.method = "deepall"
  one, other = config.to_dict(), config.to_dict()
  other["mixstyle"]["alpha"] = 0.3
  assert configs.differences(one, other) == []
  one["method"] = other["method"] = "mixstyle"
  assert configs.differences(one, other) == ["mixstyle.alpha (0.1 and 0.3)"]


@pytest.mark.parametrize(
  ("supported", "text"),
  [
    ({"backbones": ("resnet18",)}, "backbone='digits_cnn': mine supports resn"),
    ({"norms": ("batch",)}, "norm='none': mine supports batch only"),
  ],
)
def test_an_unsupported_pair_is_one_line(monkeypatch, supported, text):
  entry = registry.Entry(deepall.create, Mine, **supported)
  monkeypatch.setitem(registry.METHODS, "mine", entry)
  config = load_config("digits")
  config.method, config.data_dir = "mine", "nowhere"
  with pytest.raises(UserError) as caught:
    config_lib.check(config)
  assert str(caught.value).startswith(text)


def test_an_unsupported_pair_is_found_before_weights_are_fetched(
  monkeypatch, tmp_path
):
  fetch = lambda name: pytest.fail(f"{name} was fetched")
  monkeypatch.setattr(weights_file, "resolve", fetch)
  config = load_config("vlcs")
  assert config.pretrained and config.backbone == "alexnet"
  config.method = "rsc"
  with pytest.raises(UserError, match="backbone='alexnet': rsc supports"):
    train.train_and_evaluate(config, str(tmp_path / "run"))


def test_domain_labels_are_marked_by_the_registry(monkeypatch):
  entry = registry.Entry(lambda task, _: task, Mine, domain_labels=True)
  monkeypatch.setitem(registry.METHODS, "mine", entry)
  method = Method((), None, None)
  assert not method.domain_labels
  assert registry.create("mine", method, {}).domain_labels
