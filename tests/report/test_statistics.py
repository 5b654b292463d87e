"""Means and deviations against numbers worked out by hand."""

import pytest

from comen_jax.report.statistics import (
  Summary,
  average,
  percent,
  show,
  summarise,
)


def test_mean_and_deviation_of_three():
  # Mean 4; squares 4 + 1 + 9 = 14, over 3 - 1 = 2: the root of 7.
  found = summarise([2.0, 3.0, 7.0])
  assert found.mean == 4.0
  assert found.std == pytest.approx(2.6457513110645906, rel=1e-12)
  assert found.runs == 3


def test_deviation_of_two_is_their_distance_over_the_root_of_two():
  found = summarise([0.25, 0.75])
  assert found.mean == 0.5
  assert found.std == pytest.approx(0.5 / 2**0.5, rel=1e-12)


def test_one_run_has_no_deviation_and_equal_runs_have_zero():
  assert summarise([0.5]) == Summary(0.5, None, 1)
  assert summarise([0.5, 0.5]) == Summary(0.5, 0.0, 2)
  assert summarise([]) is None


def test_the_average_is_taken_within_seeds():
  values = {
    "a": {0: 0.9, 1: 0.7, 2: 0.8},
    "b": {0: 0.1, 1: 0.3, 2: 0.5},
  }
  # Seeds: 0.5, 0.5, 0.65. Mean 0.55; squares .0025 + .0025 + .01 = .015, over
  # 2: the root of .0075. The mean of the two deviations would be .15.
  found = average(values, ("a", "b"))
  assert found.mean == pytest.approx(0.55, rel=1e-12)
  assert found.std == pytest.approx(0.08660254037844387, rel=1e-12)
  assert found.runs == 3


def test_only_seeds_that_have_every_target_are_averaged():
  values = {"a": {0: 0.9, 1: 0.7}, "b": {1: 0.3, 2: 0.5}}
  assert average(values, ("a", "b")) == Summary(0.5, None, 1)


def test_there_is_no_average_where_a_target_is_missing():
  assert average({"a": {0: 0.9}}, ("a", "b")) is None
  assert average({"a": {0: 0.9}, "b": {1: 0.3}}, ("a", "b")) is None
  assert average({}, ()) is None


def test_how_values_are_printed():
  assert percent(summarise([0.62, 0.63])) == "62.5 ± 0.7"
  assert percent(summarise([0.6245])) == "62.5"
  assert percent(None) == ""
  assert show(summarise([0.5, 0.75]), digits=3) == "0.625 ± 0.177"
