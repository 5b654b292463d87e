"""Epochs split over stages, frozen parameters, units of work."""

import copy

import jax
import jax.numpy as jnp
import pytest
from conftest import load_config

from comen_jax import config as config_lib
from comen_jax.errors import UserError
from comen_jax.methods.base import Stage, last_epochs, split_epochs
from comen_jax.run import plan
from comen_jax.steps import hold, scaled


@pytest.mark.parametrize("shares", [(0.1, 0.3, 0.6), (0.0, 0.4, 0.6), (1.0,)])
@pytest.mark.parametrize("epochs", [3, 4, 7, 15, 50, 51])
def test_shares_sum_to_all_epochs_and_none_is_empty(epochs, shares):
  parts = split_epochs(epochs, shares)
  assert sum(parts) == epochs
  for part, share in zip(parts, shares):
    assert part >= 1 if share else part == 0
    assert abs(part - share * epochs) <= len(shares)


def test_shares_by_hand():
  assert split_epochs(50, (0.1, 0.3, 0.6)) == (5, 15, 30)
  assert split_epochs(50, (0.0, 0.4, 0.6)) == (0, 20, 30)
  assert split_epochs(3, (0.1, 0.3, 0.6)) == (1, 1, 1)
  assert split_epochs(8, (0.1, 0.3, 0.6)) == (1, 2, 5)


@pytest.mark.parametrize(
  ("epochs", "shares", "enough"),
  [
    (2, (0.1, 0.3, 0.6), 3),
    (1, (0.0, 0.4, 0.6), 2),
    (1, (0.5, 0.4, 0.1), 5),  # Four would be split into 2, 2 and none.
  ],
)
def test_too_few_epochs_are_refused_with_a_number_that_does(
  epochs, shares, enough
):
  with pytest.raises(UserError, match=f"epochs={epochs} .* such as {enough}$"):
    split_epochs(epochs, shares)
  for n in range(1, enough):
    with pytest.raises(UserError):
      split_epochs(n, shares)
  assert split_epochs(enough, shares)[-1] >= 1


def test_a_method_of_one_stage_may_have_fewer_epochs_than_comen_has_stages():
  assert [last_epochs(n, (0.1, 0.2, 0.7)) for n in (1, 2, 3, 4)] == [1, 1, 1, 2]
  for method in ("fact", "deepall", "mmld"):
    config = load_config("digits")
    config.method, config.epochs = method, 1
    config_lib.check(config)
    assert config_lib.candidate_epochs(config) == 1
  config.method = "comen_fact"
  with pytest.raises(UserError, match="such as 3"):
    config_lib.check(config)


UPDATES = {
  "backbone": {
    "conv": {"kernel": 1.0, "bias": 2.0},
    "domain_predictor": {"dense": {"kernel": 3.0, "bias": 4.0}},
    "domain_predictor_2": {"kernel": 5.0},
  },
  "domain_predictor": {"kernel": 6.0},
}


def frozen(*paths):
  return scaled_updates(**dict.fromkeys(paths, 0.0))


def scaled_updates(**scales):
  found = scaled(jax.tree.map(jnp.asarray, UPDATES), scales)
  return jax.tree.map(float, found)


def test_updates_at_and_below_a_frozen_path_are_zero():
  want = copy.deepcopy(UPDATES)
  want["backbone"]["domain_predictor"]["dense"] = {"kernel": 0.0, "bias": 0.0}
  assert frozen("backbone/domain_predictor") == want


def test_several_paths_are_frozen_and_the_rest_is_not():
  want = copy.deepcopy(UPDATES)
  want["backbone"]["conv"]["bias"] = 0.0
  want["domain_predictor"]["kernel"] = 0.0
  assert frozen("backbone/conv/bias", "domain_predictor") == want
  assert frozen() == UPDATES


def test_a_frozen_path_without_parameters_is_an_error():
  with pytest.raises(ValueError, match="backbone/convv"):
    frozen("backbone/conv", "backbone/convv")


def test_updates_are_multiplied_and_a_factor_0_stays_exact():
  want = copy.deepcopy(UPDATES)
  want["backbone"]["conv"] = {"kernel": 10.0, "bias": 40.0}
  want["domain_predictor"]["kernel"] = 0.0
  scales = {"backbone/conv": 10.0, "backbone/conv/bias": 2.0}
  assert scaled_updates(**scales, domain_predictor=0.0) == want
  broken = {"a": jnp.array([jnp.inf, jnp.nan])}
  assert scaled(broken, {"a": 0.0})["a"].tolist() == [0.0, 0.0]


def test_the_momentum_of_a_scaled_parameter_goes_on():
  new, old = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 4.0, "b": 5.0, "c": 6.0}
  assert hold(new, old, {"a": 0.0, "b": 10.0}) == {"a": 4.0, "b": 2.0, "c": 3.0}


def test_a_stage_has_one_factor_for_each_path():
  stage = Stage("s", 1, _nothing, frozen=("a",), scales={"a": 5.0, "b": 2.0})
  assert stage.factors == {"a": 0.0, "b": 2.0}


def _nothing(*_):
  raise AssertionError("a plan runs nothing")


def described(units):
  return [(u.number, u.stage.name, u.epoch, u.run_epoch) for u in units]


def test_units_are_in_the_order_of_work():
  stages = (
    Stage("warmup", 2, _nothing),
    Stage("discover", 1, _nothing, _nothing),
    Stage("encode", 3, _nothing, _nothing),
  )
  units = plan.units(stages)
  assert described(units) == [
    (0, "warmup", 0, 0),
    (1, "warmup", 1, 1),
    (2, "discover", None, 2),
    (3, "discover", 0, 2),
    (4, "encode", None, 3),
    (5, "encode", 0, 3),
    (6, "encode", 1, 4),
    (7, "encode", 2, 5),
  ]
  assert [u.stage_number for u in units] == [0, 0, 1, 1, 2, 2, 2, 2]
  assert [u.kind for u in units[1:4]] == ["epoch", "prepare", "epoch"]


def test_a_stage_may_prepare_before_each_of_its_epochs():
  stages = (
    Stage("a", 1, _nothing),
    Stage("b", 2, _nothing, _nothing, prepare_each_epoch=True),
    Stage("c", 1, _nothing, prepare_each_epoch=True),  # Nothing to prepare.
  )
  assert described(plan.units(stages)) == [
    (0, "a", 0, 0),
    (1, "b", None, 1),
    (2, "b", 0, 1),
    (3, "b", None, 2),
    (4, "b", 1, 2),
    (5, "c", 0, 3),
  ]


def test_a_stage_of_no_epochs_still_prepares():
  stages = (Stage("a", 0, _nothing, _nothing), Stage("b", 1, _nothing))
  assert described(plan.units(stages)) == [
    (0, "a", None, 0),
    (1, "b", 0, 0),
  ]


def test_stages_train_everything_and_prepare_nothing_unless_told():
  stage = Stage("only", 1, _nothing)
  assert stage.prepare is None
  assert stage.frozen == ()
