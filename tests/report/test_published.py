"""Published values of rivals: their sources, and their place beside ours."""

import pytest

from comen_jax.methods.options import OPTIONS
from comen_jax.report import paper, published
from comen_jax.report.tables import accuracy
from comen_jax.variants import VARIANTS

from .helpers import ALL, grid, make, texts

VALUES = [
  (key, value) for key, values in published.OTHERS.items() for value in values
]


def pacs(row: str):
  targets = ("art_painting", "cartoon", "photo", "sketch")
  return grid(row, {t: (0.5, 0.6) for t in targets}, dataset="pacs")


def test_all_rows_are_ours_and_all_names_are_the_papers():
  rows = {row for _, row in published.OTHERS} | published.IN_PAPER.keys()
  assert rows <= VARIANTS.keys()
  assert rows - {"deepall", "comen"} <= OPTIONS.keys()
  printed = {
    r.method
    for table in paper.TABLES.values()
    for r in (*table.supervised, *table.unsupervised)
  }
  assert set(published.IN_PAPER.values()) <= printed


@pytest.mark.parametrize(("key", "value"), VALUES)
def test_a_value_has_its_source_and_its_average_is_that_of_its_columns(
  key, value
):
  assert value.source
  assert value.values or value.average is not None
  if value.values:
    assert len(value.values) == len(paper.TABLES[key[0]].columns)
    # Some are rounded from two decimals.
    assert abs(sum(value.values) / 4 - value.mean) < 0.1


def test_the_papers_rows_of_our_methods_are_shown_deepall_first_comen_last():
  records = grid("jigen", ALL) + grid("deepall", ALL) + grid("crossgrad", ALL)
  shown = texts(make(accuracy.main, records))
  start = shown.index(("Paper (Chen et al., CVPR 2022, Table 2)",))
  assert [line[0] for line in shown[start + 1 :]] == [
    "DeepAll", "CrossGrad", "JiGen", "COMEN",
  ]  # fmt: skip
  assert shown[start + 2] == (
    "CrossGrad", "96.7", "61.1", "65.3", "80.2", "75.8", "",
  )  # fmt: skip


def test_values_from_elsewhere_are_numbered_and_their_source_is_told():
  table = make(accuracy.main, pacs("rsc"))
  shown = texts(table)
  start = shown.index(("Published elsewhere",))
  assert shown[start + 2] == (
    "RSC [2]", "79.6", "77.8", "94.5", "77.7", "82.4", "",
  )  # fmt: skip
  assert shown[start + 4] == ("RSC [4]", "", "", "", "", "85.2", "")
  assert "[4] DomainBed: ResNet-50, Adam, balanced batches." in table.notes
  assert published.UNVERIFIED_NOTE not in table.notes


def test_a_row_with_batch_norm_stands_beside_what_its_method_published():
  records = grid("jigen_bn", ALL) + grid("fact", ALL) + grid("fact_bn", ALL)
  table = make(accuracy.main, records)
  names = [line[0] for line in texts(table)]
  start = names.index("Paper (Chen et al., CVPR 2022, Table 2)")
  assert names[start + 1 :] == [
    "DeepAll", "JiGen", "COMEN", "Published elsewhere",
    "FACT [1], not verified",
  ]  # fmt: skip
  assert published.NORM_NOTE in table.notes
  both = grid("fact", ALL) + grid("fact_bn", ALL)
  assert published.NORM_NOTE not in make(accuracy.main, both).notes


def test_what_nobody_has_verified_is_marked():
  table = make(accuracy.main, grid("fact", ALL))
  (line,) = [t for t in texts(table) if t[0].startswith("FACT [")]
  assert line[0] == "FACT [1], not verified"
  assert "[1] Xu et al., CVPR 2021, not verified." in table.notes
  assert published.UNVERIFIED_NOTE in table.notes


def test_a_row_with_other_options_has_no_published_value():
  table = make(accuracy.main, grid("fact (alpha=0.2)", ALL))
  assert not any("[1]" in line[0] for line in texts(table))
