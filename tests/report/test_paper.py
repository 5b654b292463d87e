"""The paper's values as data, against its own printed averages."""

import pytest

from comen_jax import variants
from comen_jax.data import benchmarks as data
from comen_jax.report import paper

PRINTED = [
  (name, row)
  for name, table in paper.TABLES.items()
  for row in (*table.supervised, *table.unsupervised)
]


def rounds_to(value, printed):
  """One decimal; a value half-way may have been rounded either way."""
  return abs(value - printed) < 0.05 + 1e-9


def test_the_tables_have_as_many_rows_as_the_paper():
  counts = {
    name: (len(table.supervised), len(table.unsupervised))
    for name, table in paper.TABLES.items()
  }
  assert counts == {
    "pacs": (10, 8),
    "digits_dg": (6, 4),
    "vlcs": (8, 5),
    "office_home": (7, 5),
  }
  assert all(
    t.unsupervised[-1].method == "COMEN" for t in paper.TABLES.values()
  )


def test_printed_averages_are_those_of_their_columns_but_for_known_misprints():
  wrong = {
    (name, row.method)
    for name, row in PRINTED
    if not rounds_to(sum(row.values) / 4, row.average)
  }
  assert wrong == {
    ("digits_dg", "COMEN"),
    ("pacs", "RSC"),
    ("pacs", "JiGen"),
  }
  assert wrong == set(paper.MISPRINTS)


@pytest.mark.parametrize(("name", "row"), PRINTED)
def test_a_misprint_is_told_with_the_true_average(name, row):
  told = paper.misprint(name, row)
  if (name, row.method) in paper.MISPRINTS:
    true = paper.MISPRINTS[name, row.method]
    assert true == pytest.approx(sum(row.values) / 4)
    assert f"prints {row.average:.1f}" in told
  else:
    assert told == ""


def test_the_misprint_of_comen_on_digits_dg():
  # 97.1 + 67.6 + 75.1 + 91.3 = 331.1, a quarter of which is 82.775.
  row = paper.TABLES["digits_dg"].row("COMEN")
  assert row.average == 82.3
  assert "columns average 82.775." in paper.misprint("digits_dg", row)


def test_sagnet_stands_in_both_groups_of_pacs():
  table = paper.TABLES["pacs"]
  twice = {r for r in table.supervised} & {r for r in table.unsupervised}
  assert [r.method for r in twice] == ["SagNet"]


def test_averages_of_the_ablation_are_those_of_its_columns():
  for row in paper.ABLATION.values():
    assert rounds_to(sum(row.values) / 4, row.average)


def test_first_and_last_of_the_ablation_are_the_averages_of_the_tables():
  for name in paper.ABLATION_COLUMNS:
    table = paper.TABLES[name]
    for ours, theirs in (("deepall", "DeepAll"), ("comen", "COMEN")):
      average = paper.ablation_average(name, ours)
      assert average == table.row(theirs).average


def test_columns_are_the_targets_of_our_data_sets():
  for name, table in paper.TABLES.items():
    assert set(table.columns) == set(data.BENCHMARKS[name].domains)
    assert all(len(r.values) == 4 for n, r in PRINTED if n == name)


def test_the_columns_of_vlcs_are_the_letters_of_our_targets():
  # The letters are Pascal VOC, LabelMe, Caltech, SUN.
  columns = paper.TABLES["vlcs"].columns
  assert list(columns.items()) == [
    ("pascal", "V"), ("labelme", "L"), ("caltech", "C"), ("sun", "S"),
  ]  # fmt: skip
  # Caltech is by far the easiest in every row.
  for name, row in PRINTED:
    if name == "vlcs":
      assert max(row.values) == row.values[list(columns).index("caltech")]


def test_rows_of_the_ablation_switch_on_the_parts_they_name():
  for name, row in paper.ABLATION.items():
    settings = variants.VARIANTS[name].settings
    assert row.sdnorm == (settings["norm"] == "sdnorm")
    assert row.protogr == settings.get("comen.protogr", False)
    assert row.protoccl == settings.get("comen.protoccl", False)
  assert tuple(paper.ABLATION) == variants.ABLATION[:8]


def test_no_paper_figure_where_the_paper_has_none():
  assert paper.ablation_average("mini_digits", "comen") is None
  assert paper.ablation_average("pacs", "deepall_bn") is None
  assert paper.ablation_average("pacs", "sdnorm") == 81.3
