"""The list of runs."""

from comen_jax.report import grouping
from comen_jax.report.tables.runs import listed

from ..helpers import is_whole, record, texts


def table(records, out):
  (comparison,) = grouping.comparisons(records)
  return listed(comparison, out)


def test_runs_stand_under_the_command_that_trained_them(tmp_path):
  second = {"command": "python -m comen_jax.main", "date": None}
  records = [
    record("comen", seed=0)._replace(folder=tmp_path / "runs" / "a b"),
    record("comen", seed=1, selected_epoch=7),
    record("deepall", seed=0, provenance=second),
  ]
  found = table(records, tmp_path / "report")
  assert is_whole(found)
  assert texts(found) == [
    ("python -m comen_jax.main",),
    ("DeepAll", "svhn", "0", "9", "", ""),
    ("python -m comen_jax.sweep --config configs/digits.py",),
    ("COMEN", "svhn", "0", "9", "2026-03-04 05:06", "../runs/a b"),
    ("COMEN", "svhn", "1", "7", "2026-03-04 05:06", ""),
  ]
  assert found.rows[3][-1].link == "../runs/a b"
  assert found.rows[4][-1].link == ""


def test_the_run_that_holds_the_report_is_one_folder_up(tmp_path):
  (row,) = table([record()._replace(folder=tmp_path)], tmp_path / "out").rows[
    1:
  ]
  assert row[-1].text == ".."


def test_a_record_without_provenance_is_listed(tmp_path):
  found = table([record()._replace(provenance={})], tmp_path)
  assert texts(found) == [
    ("Command unknown",),
    ("COMEN", "svhn", "0", "9", "", ""),
  ]
