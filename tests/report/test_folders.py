"""Which runs are found, in any folder that holds some."""

import json
import shutil

import pytest

from comen_jax.report import records

from .helpers import line, record, refused, write_run

A, B = (record(seed=seed, accuracy=0.5 + seed / 10) for seed in range(2))
CONFIG = {"method": "comen", "norm": "", "comen": {"protogr": True}}


def found(*folders):
  """(row, seed, epochs) and folder of each run."""
  return [
    (r.row, r.measured["seed"], r.measured["epochs"], r.folder)
    for r in records.read(folders)
  ]


@pytest.mark.parametrize("path", [".", "a", "a/b", "a/b/c"])
def test_runs_are_found_in_sub_folders(tmp_path, path):
  folder = write_run(tmp_path / "top" / path, A, row="comen")
  assert found(tmp_path / "top") == [("comen", 0, 10, folder)]
  (one,) = records.read([tmp_path / "top"])
  assert one.run == ("top" if path == "." else path)


def test_runs_too_deep_and_checkpoints_are_not_searched(tmp_path):
  write_run(tmp_path / "a" / "b" / "c" / "d", A, row="comen")
  write_run(tmp_path / "checkpoints", A, row="comen")
  write_run(tmp_path / ".hidden", A, row="comen")
  refused(tmp_path, tmp_path, "has no finished run", "result.json")


def test_a_run_that_is_not_finished_is_not_found(tmp_path):
  write_run(tmp_path / "a", A, row="comen")
  (tmp_path / "b").mkdir()
  (tmp_path / "b" / "config.json").write_text(json.dumps(CONFIG))
  assert len(found(tmp_path)) == 1


def test_a_result_names_its_row(tmp_path):
  folder = write_run(tmp_path / "a", A, row="protogr", config=CONFIG)
  assert found(tmp_path) == [("protogr", 0, 10, folder)]


def test_a_result_without_a_row_is_named_by_its_config(tmp_path):
  config = {**CONFIG, "norm": "batch", "comen": {"protogr": False}}
  write_run(tmp_path / "a", A, config=CONFIG)
  write_run(tmp_path / "b", A, config=config)
  assert [row for row, *_ in found(tmp_path)] == [
    "comen",
    "comen (norm=batch, protogr=False)",
  ]


def test_a_result_without_row_and_config_is_refused(tmp_path):
  folder = write_run(tmp_path / "a", A)
  refused(tmp_path, folder / "result.json", "does not name its row")
  (folder / "config.json").write_text("{}")
  refused(tmp_path, folder / "config.json", "has no method")


def test_a_run_of_a_sweep_counts_once(tmp_path):
  # The sweep knows the name of the row; the old result.json does not.
  (tmp_path / "results.jsonl").write_text(line(A) + line(B))
  folder = write_run(tmp_path / "runs" / A.run, A)
  assert found(tmp_path) == [("comen", 0, 10, folder), ("comen", 1, 10, None)]
  assert found(tmp_path, tmp_path) == found(tmp_path)


def test_a_finished_run_that_the_sweep_has_not_recorded_yet_is_found(tmp_path):
  (tmp_path / "results.jsonl").write_text(line(A))
  folder = write_run(tmp_path / "runs" / B.run, B, row="comen")
  assert found(tmp_path) == [("comen", 0, 10, None), ("comen", 1, 10, folder)]


def test_a_copied_run_counts_once(tmp_path):
  folder = write_run(tmp_path / "a", A, row="comen")
  shutil.copytree(folder, tmp_path / "b")
  assert found(tmp_path) == [("comen", 0, 10, folder)]


def test_one_run_with_two_results_is_refused_with_both_places(tmp_path):
  other = A._replace(measured={**A.measured, "target_accuracy": 0.25})
  configs = [{**CONFIG, "learning_rate": rate} for rate in (0.1, 0.2)]
  one = write_run(tmp_path / "a", A, row="comen", config=configs[0])
  two = write_run(tmp_path / "b", other, row="comen", config=configs[1])
  refused(
    tmp_path,
    one / "result.json",
    two / "result.json",
    "target_accuracy (0.5 and 0.25)",
    "learning_rate (0.1 and 0.2)",
  )


def test_a_record_that_differs_from_the_result_in_its_folder_is_refused(
  tmp_path,
):
  other = A._replace(measured={**A.measured, "target_accuracy": 0.25})
  (tmp_path / "results.jsonl").write_text(line(other))
  folder = write_run(tmp_path / "runs" / A.run, A, row="comen")
  refused(tmp_path, tmp_path / "results.jsonl:1", folder / "result.json")


@pytest.mark.parametrize("key", ["epochs", "manifest", "weights"])
def test_sweeps_that_differ_may_use_the_same_names(tmp_path, key):
  value = 50 if key == "epochs" else "other"
  other = A._replace(measured={**A.measured, key: value})
  (tmp_path / "results.jsonl").write_text(line(A))
  (tmp_path / "results_other.jsonl").write_text(line(other))
  # Nothing tells whose log this is, so it is nobody's.
  own = tmp_path / "runs" / A.run
  own.mkdir(parents=True)
  assert [folder for *_, folder in found(tmp_path)] == [None, None]
  shutil.rmtree(own)
  write_run(own, other, row="comen")
  assert sorted(map(str, (f for *_, f in found(tmp_path)))) == [
    str(own),
    "None",
  ]


def test_m_does_not_tell_runs_apart_that_have_no_latent_domains(tmp_path):
  for m in (2, 3):
    one = record("deepall", num_domains=m)
    write_run(tmp_path / str(m), one, row="deepall")
  assert len(found(tmp_path)) == 1


@pytest.mark.parametrize("text", ["", "[1]", '{"measured": {}}'])
def test_a_file_that_is_no_result_is_told(tmp_path, text):
  (tmp_path / "result.json").write_text(text)
  (tmp_path / "config.json").write_text(json.dumps(CONFIG))
  refused(tmp_path, tmp_path / "result.json", "remove")
