"""What the first lines of a report say, and when they name a winner."""

import pytest

from comen_jax.report import grouping, headline

from .helpers import ALL, grid, record


def said(records):
  (comparison,) = grouping.comparisons(records)
  return headline.of(comparison)


def shifted(*points):
  """ALL with a row per seed, seed n lower by so many points."""
  return {
    target: tuple(first - p / 100 for p in points)
    for target, (first, _) in ALL.items()
  }


def differences(records):
  return [line for line in said(records).lines if " minus " in line]


def test_one_seed_is_no_conclusion():
  records = grid("comen", shifted(0)) + grid("deepall", shifted(30))
  (line,) = differences(records)
  assert line == "COMEN minus DeepAll: +30.0 points; one seed: no conclusion."
  assert not any("better" in line for line in said(records).lines)


def test_an_interval_that_holds_zero_is_no_conclusion():
  # Differences of 2 and 4 points: 3 ± 12.7 (Student's t, one degree).
  records = grid("comen", shifted(0, 0)) + grid("deepall", shifted(2, 4))
  (line,) = differences(records)
  assert line == (
    "COMEN minus DeepAll: +3.0 points (95 % interval -9.7 to +15.7, 2 seeds):"
    " no conclusion, the interval holds 0."
  )


@pytest.mark.parametrize(
  ("shift", "points", "better"),
  [((2.9, 3, 3.1), "+3.0", "COMEN"), ((-2.9, -3, -3.1), "-3.0", "DeepAll")],
)
def test_an_interval_without_zero_names_the_better_one(shift, points, better):
  records = grid("comen", shifted(0, 0, 0)) + grid("deepall", shifted(*shift))
  (line,) = differences(records)
  assert f"COMEN minus DeepAll: {points} points" in line
  assert line.endswith(f"3 seeds): {better} is better.")


def test_batchnorm_is_a_line_of_its_own():
  records = [
    r
    for row in ("comen", "deepall", "deepall_bn", "sdnorm")
    for r in grid(row, ALL)
  ]
  first, second = differences(records)
  assert first.startswith("COMEN minus DeepAll: +0.0")
  assert second.startswith("COMEN minus DeepAll + BatchNorm: +0.0")
  assert said(records).lines[0] == (
    "Target accuracy, over 4 targets: DeepAll 70.5 % (2 seeds), DeepAll +"
    " BatchNorm 70.5 % (2 seeds), COMEN 70.5 % (2 seeds)."
  )


def test_targets_that_only_one_row_has_are_not_averaged():
  some = {t: shifted(1, 1)[t] for t in ("svhn", "syn")}
  records = grid("comen", shifted(0, 0)) + grid("deepall", some)
  (line,) = differences(records)
  assert line.startswith("COMEN minus DeepAll on svhn, syn alone: +1.0 points")


def test_seeds_are_never_compared_with_other_seeds():
  records = [record("comen", seed=0), record("deepall", seed=1)]
  (line,) = said(records).lines
  assert "no run of DeepAll with the same target and seed" in line
  assert "no conclusion" in line


def test_rows_without_a_method_are_no_conclusion():
  (line,) = said(grid("sdnorm", ALL)).lines
  assert line == "There is no method to compare with DeepAll: no conclusion."


def test_a_method_of_ones_own_is_compared_too():
  records = grid("new", shifted(0, 0)) + grid("deepall", shifted(2, 4))
  (line,) = differences(records)
  assert line.startswith("new minus DeepAll: +3.0")


def test_of_several_m_that_of_the_sources_is_compared():
  records = grid("deepall", shifted(1, 1))
  for m, lower in ((2, 5), (3, 0), (4, 7)):
    records += grid("comen", shifted(lower, lower), num_domains=m)
  (line,) = differences(records)
  assert line.startswith("COMEN, M = 3 minus DeepAll: +1.0")


def test_methods_of_one_seed_share_a_sentence():
  same = shifted(0, 0)
  records = grid("deepall", same) + grid("comen", same)
  for row, lower in (("fact", 1), ("sagnet", -2), ("rsc", 0.02)):
    records += grid(row, shifted(lower))
  *_, comen, shared = said(records).lines
  assert comen.startswith("COMEN minus DeepAll: +0.0 points (95 %")
  # The largest first; what rounds to 0 has no sign of a loss.
  assert shared == (
    "Differences to DeepAll in points, one seed each, no conclusion: +2.0"
    " SagNet; +0.0 RSC; -1.0 FACT."
  )


def test_a_method_with_an_interval_or_without_a_target_has_its_own_sentence():
  records = grid("deepall", shifted(0, 0)) + grid("fact", shifted(0, 0))
  some = {t: shifted(1)[t] for t in ("svhn", "syn")}
  records += grid("sagnet", some) + grid("rsc", shifted(1))
  fact, rsc, sagnet = sorted(differences(records))
  assert fact.startswith("FACT minus DeepAll: +0.0 points (95 % interval")
  assert rsc == "RSC minus DeepAll: -1.0 points; one seed: no conclusion."
  assert sagnet.startswith("SagNet minus DeepAll on svhn, syn alone: -1.0")


def test_of_many_averages_those_of_comen_and_the_baselines_are_named():
  rivals = ("fact", "sagnet", "rsc", "jigen")
  records = grid("deepall", ALL) + grid("comen", ALL)
  for row in rivals:
    records += grid(row, ALL)
  assert "FACT 70.5 %" in said(records).lines[0]
  assert said(records + grid("eisnet", ALL)).lines[0] == (
    "Target accuracy, over 4 targets: DeepAll 70.5 % (2 seeds), COMEN 70.5 % (2"
    " seeds); 5 more methods are in the table."
  )


def test_one_run_says_what_was_trained_and_what_came_out():
  about, lines = said([record("comen", "svhn", 4, 0.625)])
  assert about == "COMEN on Digits-DG, target svhn held out, seed 4"
  assert lines[0] == (
    "Target accuracy: 62.5 % (6,000 images; chance is 10.0 %) at epoch 9 of 10,"
    " which source validation chose (90.0 % there)."
  )
  assert "One run: no conclusion" in lines[1]
