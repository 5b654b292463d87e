"""Which runs are averaged together, and which never are."""

import pytest

from comen_jax.errors import UserError
from comen_jax.report import grouping

from .helpers import record, write_run


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
    (
      {"epochs": 50},
      ["Digits-DG, 10 epochs", "Digits-DG, 50 epochs"],
    ),
    (
      {"manifest": "a0672131620"},
      [
        "Digits-DG, 10 epochs, data 71c3b8cc",
        "Digits-DG, 10 epochs, data a0672131",
      ],
    ),
    (
      {"weights": "0123456789abc"},
      [
        "Digits-DG, 10 epochs, random start",
        "Digits-DG, 10 epochs, weights 01234567",
      ],
    ),
    (
      {"dataset": "mini_digits", "epochs": 1},
      ["Digits-DG, 10 epochs", "mini digits, 1 epoch"],
    ),
  ],
)
def test_runs_of_other_settings_are_compared_in_tables_of_their_own(
  changes, expected
):
  one, other = record(accuracy=0.2), record(accuracy=0.8, run="b", **changes)
  found = grouping.comparisons([one, other])
  assert [c.title for c in found] == expected
  assert [c.records for c in found] == [[one], [other]]
  for comparison in found:
    assert [g.title for g in comparison.groups] == ["COMEN"]


def test_runs_of_other_numbers_of_domains_are_rows_of_their_own():
  one, other = record(accuracy=0.2), record(accuracy=0.8, num_domains=4)
  (comparison,) = grouping.comparisons([one, other])
  assert [g.title for g in comparison.groups] == [
    "COMEN, M = 3",
    "COMEN, M = 4",
  ]
  assert [g.runs["svhn"] for g in comparison.groups] == [{0: one}, {0: other}]


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


CONFIG = {
  "method": "comen", "norm": "", "seed": 0, "target": "svhn", "data_dir": "D",
  "learning_rate": 0.05, "eval_batch_size": 512, "pretrained": "",
  "comen": {"protogr": True, "clustering": "gmm"},
  "other": {"x": 1}, "deepall": {"y": 1}, "logging": {"every": 10},
}  # fmt: skip


def _two_runs(root, changes, row="comen"):
  """Two seeds in folders whose configs differ by `changes`."""
  configs = CONFIG, {**CONFIG, **changes}
  return [
    record(row, seed=seed)._replace(
      folder=write_run(root / str(seed), record(row), config=config),
      config=config,
    )
    for seed, config in enumerate(configs)
  ]


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"learning_rate": 0.1}, "learning_rate (0.05 and 0.1)"),
    (
      {"comen": {"protogr": True, "clustering": "kmeans"}},
      "comen.clustering (gmm and kmeans)",
    ),
  ],
)
def test_runs_of_other_configs_are_never_averaged(tmp_path, changes, told):
  with pytest.raises(UserError) as error:
    grouping.group(_two_runs(tmp_path, changes))
  text = str(error.value)
  assert "\n" not in text
  for part in (tmp_path / "0", tmp_path / "1", told):
    assert str(part) in text


@pytest.mark.parametrize(
  "changes",
  [
    {},
    # A record tells these, or they do not matter.
    {"norm": "sdnorm", "seed": 1, "target": "syn", "num_domains": 4},
    {"data_dir": "E", "eval_batch_size": 8, "logging": {"every": 1}},
    {"deepall": {"y": 2}},  # The settings of a method that is not used.
    {"new_key": 1},  # From a later version of the code.
  ],
)
def test_runs_of_like_configs_are_averaged(tmp_path, changes):
  (group,) = grouping.group(_two_runs(tmp_path, changes))
  assert list(group.runs["svhn"]) == [0, 1]
