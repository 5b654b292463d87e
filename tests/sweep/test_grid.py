"""What a sweep consists of; nothing is trained here."""

import numpy as np
import pytest
from conftest import load_config

from comen_jax import config as config_lib
from comen_jax import variants
from comen_jax.data.dataset import Dataset
from comen_jax.errors import UserError
from comen_jax.methods.base import split_epochs
from comen_jax.sweep import grid


@pytest.fixture
def dataset():
  domains = np.repeat(np.arange(4, dtype=np.int32), 4)
  return Dataset(
    name="digits_dg",
    images=np.zeros((16, 4, 4, 3), np.uint8),
    labels=np.zeros(16, np.int32),
    domains=domains,
    splits=np.tile(np.array([0, 0, 0, 1], np.uint8), 4),
    class_names=("0",),
    domain_names=("a", "b", "c", "d"),
    manifest="x",
    default_target="",
  )


@pytest.fixture
def config():
  return load_config("digits")


def test_targets_rows_and_seeds_are_crossed_seed_by_seed(config, dataset):
  runs = grid.make(config, dataset, "all", "0,2", "deepall,comen")
  names = [run.name for run in runs]
  assert len(names) == len(set(names)) == 16
  assert names[:2] == ["digits_dg-a-deepall-seed0", "digits_dg-b-deepall-seed0"]
  assert names[4] == "digits_dg-a-comen-m3-seed0"
  assert all(name.endswith("seed0") for name in names[:8])
  last = runs[-1].config
  assert (last.target, last.seed, last.method) == ("d", 2, "comen")
  assert config.target == "" and config.seed == 0  # The given one is as it was.


def test_ablation_is_the_papers_eight_rows_and_our_controls(config, dataset):
  runs = grid.make(config, dataset, "b", "0", "ablation")
  parts = [
    (
      config_lib.norm(r.config),
      r.config.method == "comen" and r.config.comen.protogr,
      r.config.method == "comen" and r.config.comen.protoccl,
      r.config.comen.true_domains,
    )
    for r in runs
  ]
  assert [r.row for r in runs] == list(variants.ABLATION)
  on, off, own, sd = True, False, "none", "sdnorm"
  assert parts == [
    (own, off, off, off),
    (sd, off, off, off),
    (own, on, off, off),
    (own, off, on, off),
    (own, on, on, off),
    (sd, on, off, off),
    (sd, off, on, off),
    (sd, on, on, off),
    ("batch", off, off, off),
    ("batch", on, on, off),
    (sd, on, on, on),
  ]


def test_rows_differ_in_what_they_name_only(config, dataset):
  runs = grid.make(config, dataset, "b", "0", "ablation")
  named = {"method", "norm", "comen"}
  common = [
    {k: v for k, v in r.config.to_dict().items() if k not in named}
    for r in runs
  ]
  assert all(c == common[0] for c in common)
  budget = {(r.config.epochs, r.config.batch_size, r.config.seed) for r in runs}
  assert len(budget) == 1
  assert sum(split_epochs(config.epochs, config.stage_shares)) == config.epochs


def test_on_a_resnet_the_batchnorm_rows_are_the_plain_ones(dataset):
  config = load_config("pacs")
  same = grid.left_out("ablation", config)
  assert same == {
    "deepall_bn": "deepall",
    "protogr_protoccl_bn": "protogr_protoccl",
  }
  assert len(grid.make(config, dataset, "a", "0", "ablation")) == 9


def test_m_is_swept_where_it_matters_and_true_domains_have_their_own(
  config, dataset
):
  methods = "deepall,comen,comen_true_domains"
  runs = grid.make(config, dataset, "a", "0", methods, "2,5")
  assert [r.name for r in runs] == [
    "digits_dg-a-deepall-seed0",
    "digits_dg-a-comen-m2-seed0",
    "digits_dg-a-comen-m5-seed0",
    "digits_dg-a-comen_true_domains-m3-seed0",
  ]
  assert [r.config.num_domains for r in runs] == [3, 2, 5, 3]


@pytest.mark.parametrize("count", [1, 3, 5, 40])
def test_parts_are_disjoint_and_make_up_the_whole(count, config, dataset):
  runs = grid.make(config, dataset, "all", "0,1")
  parts = [grid.part(runs, f"{i}/{count}")[0] for i in range(count)]
  names = [run.name for part in parts for run in part]
  assert sorted(names) == sorted(run.name for run in runs)
  sizes = [len(part) for part in parts]
  assert max(sizes) - min(sizes) <= 1


BAD = {
  "targets": ("e", "'e' is not a domain.*a, b, c, d"),
  "seeds": ("0,x", "seeds=0,x"),
  "methods": ("comon", "methods=comon.*comen"),
  "num_domains": ("3,", "num_domains"),
}
NO_DATA = {
  "seeds": (
    "0,99999999999999999999",
    "seed=9{20}: .*4294967295",
  ),
  "methods": ("comon", "methods=comon"),
  "num_domains": ("0,3", "num_domains=0: give .* 1 to 1000"),
}


@pytest.mark.parametrize("flag", BAD)
def test_bad_flag_is_one_line_that_names_it(flag, config, dataset):
  value, text = BAD[flag]
  with pytest.raises(UserError, match=text) as caught:
    grid.make(config, dataset, **{flag: value})
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize("flag", NO_DATA)
def test_bad_flag_is_found_before_data_are_read(flag, config):
  value, text = NO_DATA[flag]
  flags = {"seeds": "0", "methods": "comen", "num_domains": "", flag: value}
  with pytest.raises(UserError, match=text) as caught:
    grid.check(config, **flags)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shard", ["4/4", "1", "a/2", "0/0", "-1/2"])
def test_bad_shard_names_the_way_out(shard):
  with pytest.raises(UserError, match=f"shard={shard}"):
    grid.part([], shard)


@pytest.mark.parametrize(
  ("key", "value", "flag"),
  [("target", "a", "--targets"), ("seed", 1, "--seeds")],
)
def test_what_the_sweep_sets_cannot_be_set_beside_it(key, value, flag, config):
  config[key] = value
  with pytest.raises(UserError, match=flag):
    grid.check(config, "0", "comen", "")


@pytest.mark.parametrize(
  ("given", "methods", "text"),
  [
    ({"comen.protogr": False}, "deepall,comen", "row comen sets .* to True"),
    ({"augment": "amplitude"}, "comen_randconv", None),
    ({"augment": "amplitude"}, "deepall_bn_randconv", "sets .* to randconv"),
    ({"augment": "randconv"}, "deepall_bn_randconv", None),
    ({"method": "fact"}, "comen", "give --methods"),
    ({"sfa_a.strength": 0.1}, "sfa_s,deepall", "not read by sfa_s, deepall"),
    ({"sfa_a.strength": 0.1, "epochs": 3}, "sfa_s,sfa_a", None),
    ({"randconv.weight": 0.0}, "comen_randconv", "not read by comen_randconv"),
    ({"randconv.mix": False, "comen.portion": 1.0}, "comen_randconv", None),
    ({"mixstyle.alpha": 0.3}, "comen_mixstyle", None),
  ],
)
def test_a_flag_that_a_row_overrides_or_none_reads_is_one_line(
  given, methods, text, config
):
  if text is None:
    grid.check_given(given, methods, config)
    return
  with pytest.raises(UserError, match=text) as caught:
    grid.check_given(given, methods, config)
  (key,) = given
  assert f"config.{key}" in str(caught.value)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("name", "near"), [("labelfree", "label_free"), ("sagnet_bn", "sagnet")]
)
def test_a_wrong_row_gets_the_nearest_names(name, near, config):
  with pytest.raises(UserError, match=f"did you mean {near},"):
    grid.check(config, "0", name, "")


def test_a_method_without_a_variant_has_a_row_of_its_own(
  config, dataset, monkeypatch
):
  entry = grid.METHODS["deepall"]
  monkeypatch.setitem(grid.METHODS, "mine", entry)
  (run,) = grid.make(config, dataset, "a", "0", "mine")
  assert run.config.method == "mine"


def test_groups_have_all_methods_without_and_with_domain_labels(config):
  free = grid.row_names("label_free", config)
  assert free[:2] == ("deepall", "deepall_bn")
  assert {"comen", "mixstyle", "fact"} < set(free)
  labelled = grid.row_names("labelled", config)
  assert {"vrex", "mldg", "crossgrad"} < set(labelled)
  assert {*free, *labelled} == set(grid.METHODS)
  both = grid.row_names("labelled,label_free,vrex,sdnorm", config)
  assert both == (*labelled, *free, "sdnorm")


def test_every_rival_has_a_row_with_batch_norm(config):
  free = grid.row_names("label_free_bn", config)
  assert free[:1] == ("deepall_bn",)
  assert {"comen", "mixstyle_bn", "fact_bn", "sagnet"} < set(free)
  assert not {"deepall", "fact", "comen_bn"} & set(free)
  row = grid.VARIANTS["fact_bn"]
  assert row.title == "FACT + BatchNorm"
  assert row.settings == {"method": "fact", "norm": "batch"}
  title = "VREx + BatchNorm (uses domain labels)"
  assert grid.VARIANTS["vrex_bn"].title == title


def test_a_group_leaves_out_what_does_not_fit_and_says_why(config, dataset):
  config.backbone, config.image_size, config.store_size = "alexnet", 64, 64
  found = grid.unsupported("label_free", config)
  assert found["sagnet"].startswith("backbone='alexnet': sagnet supports")
  assert all("\n" not in why for why in found.values())
  assert "sagnet" not in grid.row_names("label_free", config)
  grid.check(config, "0", "label_free", "")
  with pytest.raises(UserError, match="sagnet supports"):
    grid.check(config, "0", "sagnet", "")  # Named, so it is an error.


def test_options_that_are_not_the_defaults_make_a_row_and_a_folder(
  config, dataset
):
  (usual,) = grid.make(config, dataset, "a", "0", "vrex")
  assert (usual.name, usual.row) == ("digits_dg-a-vrex-seed0", "vrex")
  config.vrex.weight = 10.0
  other, deepall = grid.make(config, dataset, "a", "0", "vrex,deepall")
  assert other.row == "vrex (weight=10.0)"
  assert other.name == "digits_dg-a-vrex_weight_10.0-seed0"
  assert deepall.name == "digits_dg-a-deepall-seed0"
