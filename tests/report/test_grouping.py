"""Which runs are averaged together, and which never are."""

import pytest

from comen_jax.errors import UserError
from comen_jax.report import grouping

from .helpers import record


def titles(records):
  return [g.title for g in grouping.group(records)]


def test_targets_and_seeds_of_a_row_are_one_group():
  records = [record(target=t, seed=s) for t in ("svhn", "syn") for s in (0, 1)]
  (group,) = grouping.group(records)
  assert group.title == "COMEN"
  assert {t: list(runs) for t, runs in group.runs.items()} == {
    "svhn": [0, 1],
    "syn": [0, 1],
  }


def test_groups_come_in_the_order_of_the_rows():
  records = [record(row) for row in ("new", "comen", "sdnorm", "deepall")]
  assert titles(records) == ["DeepAll", "SDNorm", "COMEN", "new"]


@pytest.mark.parametrize(
  ("changes", "expected"),
  [
    ({"num_domains": 4}, ["COMEN, M = 3", "COMEN, M = 4"]),
    ({"epochs": 50}, ["COMEN, 10 epochs", "COMEN, 50 epochs"]),
    (
      {"manifest": "a0672131620"},
      ["COMEN, data 71c3b8cc", "COMEN, data a0672131"],
    ),
    (
      {"weights": "0123456789abc"},
      ["COMEN, random start", "COMEN, weights 01234567"],
    ),
  ],
)
def test_runs_of_other_settings_are_groups_of_their_own(changes, expected):
  one, other = record(accuracy=0.2), record(accuracy=0.8, run="b", **changes)
  groups = grouping.group([one, other])
  assert [g.title for g in groups] == expected
  for g in groups:
    assert [len(runs) for runs in g.runs.values()] == [1]


def test_numbers_of_latent_domains_do_not_part_rows_that_have_none():
  records = [
    record("deepall", seed=0, num_domains=3),
    record("deepall", seed=1, num_domains=4),
    record("comen", num_domains=4),
  ]
  assert titles(records) == ["DeepAll", "COMEN"]


def test_m_is_told_of_rows_that_have_latent_domains_only():
  records = [record(num_domains=m) for m in (2, 3)] + [record("deepall")]
  assert titles(records) == ["DeepAll", "COMEN, M = 2", "COMEN, M = 3"]


def test_the_same_seed_twice_is_refused_not_averaged():
  with pytest.raises(UserError, match="a and b have the same row"):
    grouping.group([record(run="a"), record(run="b")])


def test_rows_that_use_domain_labels_are_marked():
  records = [
    record("comen"),
    record("comen_true_domains"),
    record("new", domain_labels=True),
  ]
  assert titles(records) == [
    "COMEN",
    "COMEN with true domains (uses domain labels)",
    "new (uses domain labels)",
  ]


def test_the_papers_targets_are_all_there_others_only_if_they_were_run():
  letters = ("caltech", "labelme", "pascal", "sun")
  vlcs = record(target="sun", dataset="vlcs", sources=letters[:3])
  assert grouping.targets_of([vlcs]) == ("pascal", "labelme", "caltech", "sun")
  mini = [
    record(target=target, dataset="mini_digits")
    for target in ("street", "written")
  ]
  assert grouping.targets_of(mini) == ("written", "street")
  own = record(target="b", dataset="folder", sources=["c", "a"])
  assert grouping.targets_of([own]) == ("b",)


def test_data_sets_come_in_the_order_of_the_paper():
  names = ("mini_digits", "office_home", "digits_dg", "pacs")
  found = grouping.by_dataset([record(dataset=name) for name in names])
  assert list(found) == ["pacs", "digits_dg", "office_home", "mini_digits"]


def test_runs_are_counted_per_target_where_they_differ():
  records = [record(target=t, seed=s) for t in ("svhn", "syn") for s in (0, 1)]
  (group,) = grouping.group(records)
  assert group.count(("svhn", "syn")) == "4"
  assert group.count(("mnist", "svhn", "syn")) == "4 (0, 2, 2)"
