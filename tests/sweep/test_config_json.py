"""A config that went through JSON is the config that was sent."""

import json

import pytest
from conftest import ROOT, load_config
from ml_collections import ConfigDict

from comen_jax.sweep import config_json

CONFIGS = sorted(p.stem for p in (ROOT / "configs").glob("*.py"))


def _there_and_back(config):
  return config_json.decode(json.loads(json.dumps(config_json.encode(config))))


def _typed(value):
  """Tells 1 from 1.0 and True, and a tuple from a list, at any depth."""
  if isinstance(value, dict):
    return {name: _typed(v) for name, v in value.items()}
  if isinstance(value, list | tuple):
    return type(value), [_typed(v) for v in value]
  return type(value), value


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_comes_back_with_its_tuples(name):
  config = load_config(name)
  found = _there_and_back(config)
  assert _typed(found.to_dict()) == _typed(config.to_dict())
  assert isinstance(found.lr_drops, tuple)
  with pytest.raises(AttributeError):
    found.no_such_key = 1


def test_values_that_json_does_not_know_come_back():
  config = ConfigDict(
    {
      "nested": ((1, 2.0), [True, None, (("a",),)]),
      "tuple": {"dict": (), "list": []},
      "odd": (float("inf"), 1e-320, -0.0, 2**70, "\x00é\n"),
    }
  )
  assert _typed(_there_and_back(config).to_dict()) == _typed(config.to_dict())
