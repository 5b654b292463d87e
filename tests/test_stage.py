"""Epochs shared out to stages, masks over parameters, units of work."""

import pytest

from comen_jax import plan
from comen_jax.stage import Stage, all_but, everything, split_epochs


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
  ("epochs", "shares"), [(2, (0.1, 0.3, 0.6)), (1, (0.0, 0.4, 0.6))]
)
def test_too_few_epochs_are_refused(epochs, shares):
  with pytest.raises(ValueError, match=f"{epochs} epochs are too few"):
    split_epochs(epochs, shares)


PARAMS = {
  "backbone": {
    "conv": {"kernel": 0, "bias": 1},
    "domain_predictor": {"dense": {"kernel": 2, "bias": 3}},
    "domain_predictor_2": {"kernel": 4},
  },
  "domain_predictor": {"kernel": 5},
  "protogr": {"backbone": {"domain_predictor": {"kernel": 6}}},
}


def test_all_but_a_path_freezes_what_lies_below_it():
  mask = all_but("backbone", "domain_predictor")(PARAMS)
  assert mask == {
    "backbone": {
      "conv": {"kernel": True, "bias": True},
      "domain_predictor": {"dense": {"kernel": False, "bias": False}},
      "domain_predictor_2": {"kernel": True},
    },
    "domain_predictor": {"kernel": True},
    "protogr": {"backbone": {"domain_predictor": {"kernel": False}}},
  }


def test_all_but_one_name_freezes_it_wherever_it_is():
  mask = all_but("domain_predictor")(PARAMS)
  assert mask["backbone"]["conv"] == {"kernel": True, "bias": True}
  frozen = mask["backbone"]["domain_predictor"]["dense"]
  assert frozen == {"kernel": False, "bias": False}
  assert mask["domain_predictor"] == {"kernel": False}
  assert mask["backbone"]["domain_predictor_2"] == {"kernel": True}


def test_everything_trains_everything():
  assert everything({"a": {"b": 0}, "c": 1}) == {"a": {"b": True}, "c": True}


def _nothing(*_):
  raise AssertionError("a plan runs nothing")


def test_units_are_in_the_order_of_work():
  stages = (
    Stage("warmup", 2, _nothing),
    Stage("discover", 1, _nothing, _nothing),
    Stage("encode", 3, _nothing, _nothing),
  )
  assert plan.units(stages) == [
    (0, 0, 0),
    (0, 1, 1),
    (1, None, 2),
    (1, 0, 2),
    (2, None, 3),
    (2, 0, 3),
    (2, 1, 4),
    (2, 2, 5),
  ]


def test_a_stage_of_no_epochs_still_prepares():
  stages = (Stage("a", 0, _nothing, _nothing), Stage("b", 1, _nothing))
  assert plan.units(stages) == [(0, None, 0), (1, 0, 0)]


def test_stages_train_everything_and_prepare_nothing_unless_told():
  stage = Stage("only", 1, _nothing)
  assert stage.prepare is None
  assert stage.trainable is everything
