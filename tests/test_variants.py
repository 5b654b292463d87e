"""Names of the variants, and the name of any run's config."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT, load_config

from comen_jax import variants
from comen_jax.methods.registry import METHODS
from comen_jax.variants import VARIANTS


def config(**given):
  """A whole nested config, with values by dotted key (`__` for the dot)."""
  made = load_config("digits")
  with made.unlocked():
    made.update_from_flattened_dict(
      {key.replace("__", "."): value for key, value in given.items()}
    )
  return made.to_dict()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_config_of_a_variant_has_its_name(name):
  settings = {
    k.replace(".", "__"): v for k, v in VARIANTS[name].settings.items()
  }
  assert variants.name_of(config(**settings)) == name


@pytest.mark.parametrize(
  ("given", "name"),
  [
    ({}, "comen"),  # As `main` writes it: the norm is the method's preset.
    ({"norm": "sdnorm"}, "comen"),
    ({"norm": "batch"}, "protogr_protoccl_bn"),
    ({"norm": "own", "comen__protogr": False}, "protoccl"),
    ({"comen__protogr": False, "comen__protoccl": False}, "sdnorm"),
    ({"comen__true_domains": True}, "comen_true_domains"),
    ({"method": "deepall", "norm": "own"}, "deepall"),
    ({"method": "deepall_bn", "norm": "batch"}, "deepall_bn"),
    ({"method": "deepall_bn", "augment": "jigen"}, "deepall_bn"),
    # COMEN's settings do not matter to other methods.
    ({"method": "deepall", "comen__protogr": False}, "deepall"),
  ],
)
def test_a_norm_may_be_given_or_preset(given, name):
  assert variants.name_of(config(**given)) == name


def test_an_augmentation_may_be_a_mapping():
  given = {"method": "deepall_bn", "norm": "", "augment": {"flip": 0.5}}
  assert variants.name_of(given) == "deepall_bn"


def test_a_config_needs_no_block_of_a_method_that_it_does_not_use():
  assert variants.name_of({"method": "deepall", "norm": ""}) == "deepall"


@pytest.mark.parametrize(
  ("given", "name"),
  [
    (
      {"norm": "batch", "comen__protogr": False},
      "comen (norm=batch, protogr=False)",
    ),
    ({"norm": "none"}, "comen (norm=none)"),
    (
      {"norm": "own", "comen__true_domains": True},
      "comen (norm=own, true_domains=True)",
    ),
    ({"method": "deepall", "norm": "batch"}, "deepall (norm=batch)"),
    ({"method": "mine"}, "mine"),
    ({"method": "mine", "norm": "batch"}, "mine (norm=batch)"),
    (
      {"method": "fact", "augment": "amplitude"},
      "fact (augment=amplitude)",
    ),
    ({"augment": "randconv"}, "comen (augment=randconv)"),
  ],
)
def test_a_config_that_is_no_variant_has_a_name_of_its_own(given, name):
  assert variants.name_of(config(**given)) == name


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_norm_is_the_preset_of_the_method(method):
  given = config(method=method, norm=METHODS[method].norm)
  assert variants.name_of(given) == method


def test_the_ablation_has_every_variant_of_comen_and_deepall_once():
  own = ("comen", "deepall", "deepall_bn")
  names = [
    n
    for n, v in VARIANTS.items()
    if v.settings["method"] in own and "augment" not in v.settings
  ]
  assert sorted(variants.ABLATION) == sorted(names)


@pytest.mark.parametrize(
  ("given", "name"),
  [
    ({"method": "vrex"}, "vrex"),
    ({"method": "vrex", "vrex__weight": 10.0}, "vrex (weight=10.0)"),
    (
      {"method": "vrex", "norm": "batch", "vrex__warmup": 0.0},
      "vrex (norm=batch, warmup=0.0)",
    ),
    ({"method": "vrex", "irm__weight": 9.0}, "vrex"),  # Not its option.
    # COMEN with FACT's pictures leaves the teacher out, and its weight.
    ({"method": "comen_fact", "fact__weight": 9.0}, "comen_fact"),
    (
      {"method": "comen_fact", "fact__strength": 0.5},
      "comen_fact (fact.strength=0.5)",
    ),
    (
      {"method": "mixstyle", "mixstyle__layers": ("layer1",)},
      "mixstyle (layers=('layer1',))",
    ),
  ],
)
def test_options_that_are_not_the_defaults_give_a_row_of_their_own(given, name):
  made = config(**given)
  assert variants.name_of(made) == name
  # A config.json has lists, and may lack options that came later.
  assert variants.name_of(json.loads(json.dumps(made))) == name


@pytest.mark.parametrize("method", METHODS)
def test_the_title_of_a_method_says_that_it_uses_domain_labels(method):
  if method in VARIANTS:
    title = VARIANTS[method].title
    assert (variants.LABELS_MARK in title) == METHODS[method].domain_labels
  assert variants.name_of({"method": method, "norm": ""}) == method


def test_a_title_keeps_the_options_of_its_row():
  assert variants.title_of("fact") == "FACT"
  assert variants.title_of("fact (alpha=0.2)") == "FACT (alpha=0.2)"
  assert variants.title_of("mine (a=1)") == "mine (a=1)"


@pytest.mark.parametrize(
  ("row", "title"),
  [
    ("fact (norm=batch, alpha=0.2)", "FACT + BatchNorm (alpha=0.2)"),
    (
      "mixstyle (norm=batch, layers=('layer1',))",
      "MixStyle + BatchNorm (layers=('layer1',))",
    ),
    ("mixstyle (norm=batch)", "MixStyle + BatchNorm"),
    ("fact (norm=none, alpha=0.2)", "FACT (norm=none, alpha=0.2)"),
    # Not the row deepall_bn, which is another method.
    ("deepall (norm=batch)", "DeepAll (norm=batch)"),
    ("comen (norm=batch, protogr=False)", "COMEN (norm=batch, protogr=False)"),
  ],
)
def test_a_title_says_batch_norm_as_the_row_without_options_does(row, title):
  assert variants.title_of(row) == title


def test_variants_are_pure_data():
  code = (
    "import sys, comen_jax.variants\n"
    "print([m for m in ('jax', 'flax', 'numpy') if m in sys.modules])"
  )
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
    check=True,
  )  # fmt: skip
  assert done.stdout.strip() == "[]"
