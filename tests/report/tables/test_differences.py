"""Paired differences and their interval."""

import math

import pytest

from comen_jax.report.statistics import Summary, interval
from comen_jax.report.tables import differences

from ..helpers import ALL, LOWER, grid, is_whole, make, texts


def test_differences_are_taken_seed_by_seed():
  lower = {t: (a - 0.02, b - 0.04) for t, (a, b) in ALL.items()}
  table = make(
    differences.of_comen, grid("comen", ALL) + grid("deepall", lower)
  )
  assert is_whole(table)
  (row,) = texts(table)
  # 2 and 4 points: mean 3, deviation sqrt 2, t of one degree is 12.706.
  assert row[1:6] == ("+3.0 ± 1.4",) * 5
  half = 12.706 * math.sqrt(2) / math.sqrt(2)
  assert row[6] == f"{3 - half:+.1f} to {3 + half:+.1f}"
  assert row[7] == "2"


def test_one_seed_has_no_interval_and_a_missing_target_no_average():
  one = {t: (a,) for t, (a, _) in ALL.items()}
  (row,) = texts(
    make(differences.of_comen, grid("comen", ALL) + grid("deepall", one))
  )
  assert row[1:] == ("+0.0",) * 5 + ("", "1")
  del one["svhn"]
  (row,) = texts(
    make(differences.of_comen, grid("comen", ALL) + grid("deepall", one))
  )
  assert row[3] == "" and row[5:] == ("", "", "")


def test_nothing_to_compare_is_no_table():
  assert make(differences.of_comen, grid("comen", ALL)) is None
  assert make(differences.of_comen, grid("deepall", ALL)) is None


def test_each_method_stands_against_the_baseline_of_its_norm():
  one = {t: (a,) for t, (a, _) in LOWER.items()}
  records = [
    *grid("deepall", ALL, norm="none"),
    *grid("deepall_bn", LOWER, norm="batch"),
    *grid("comen", ALL, norm="sdnorm"),
    *grid("sdnorm", ALL, norm="sdnorm"),
    *grid("mixstyle_bn", one, norm="batch"),
    *grid("jigen", one, norm="none"),
    *grid("comen_fact", one, norm="sdnorm"),
    *grid("comen_mixstyle", ALL, norm="sdnorm"),
  ]
  table = make(differences.of_methods, records)
  assert is_whole(table)
  found = {(r[0], r[1]): (r[-3], r[-1]) for r in texts(table)}
  assert found == {
    ("COMEN", "DeepAll"): ("+0.0 ± 0.0", "2"),
    ("COMEN", "DeepAll + BatchNorm"): ("+10.0 ± 0.0", "2"),
    ("MixStyle + BatchNorm", "DeepAll + BatchNorm"): ("+0.0", "1"),
    ("JiGen", "DeepAll"): ("-10.0", "1"),
    # No baseline has its norm.
    ("COMEN + FACT's pictures", "DeepAll"): ("-10.0", "1"),
    ("COMEN + FACT's pictures", "DeepAll + BatchNorm"): ("+0.0", "1"),
    ("COMEN + MixStyle", "DeepAll"): ("+0.0 ± 0.0", "2"),
    ("COMEN + MixStyle", "DeepAll + BatchNorm"): ("+10.0 ± 0.0", "2"),
    # And with the other method alone.
    ("COMEN + MixStyle", "MixStyle + BatchNorm"): ("+10.0", "1"),
  }


def test_comen_alone_needs_no_table_of_methods():
  records = grid("comen", ALL) + grid("deepall", ALL) + grid("sdnorm", ALL)
  assert make(differences.of_methods, records) is None
  assert make(differences.of_methods, grid("fact", ALL)) is None


@pytest.mark.parametrize(("runs", "t"), [(2, 12.706), (3, 4.303), (5, 2.776)])
def test_interval_is_students(runs, t):
  got = interval(Summary(0.0, 2.0, runs))
  assert got == pytest.approx(t * 2 / math.sqrt(runs), rel=1e-3)
  assert interval(Summary(0.0, None, 1)) is None
