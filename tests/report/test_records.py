"""Reading records, each run once."""

import json

import pytest

from comen_jax.report import records

from .helpers import line, record, refused

A, B, C = (record(seed=seed, accuracy=0.5 + seed / 10) for seed in range(3))


def write(folder, **files):
  folder.mkdir(exist_ok=True)
  for name, text in files.items():
    (folder / f"{name.replace('__', '.')}.jsonl").write_text(text)
  return folder


def test_all_shards_of_all_folders_are_read(tmp_path):
  first = write(
    tmp_path / "first",
    **{"results__0-of-2": line(A), "results__1-of-2": line(B)},
  )
  second = write(tmp_path / "second", results=line(C))
  assert records.read([first, second]) == [A, B, C]
  assert records.read([second, first]) == [A, B, C]


def test_a_run_counts_once_however_often_it_is_written(tmp_path):
  folder = write(
    tmp_path, **{"results__0-of-2": line(A) * 2, "results": line(B) + line(A)}
  )
  assert records.read([folder, folder]) == [A, B]


def test_where_and_when_a_run_was_made_may_differ(tmp_path):
  again = A._replace(provenance={**A.provenance, "commit": "other"})
  folder = write(tmp_path, results=line(A) + line(again))
  assert records.read([folder]) == [A]


def test_one_name_for_two_results_is_refused_with_both_places(tmp_path):
  other = A._replace(measured={**A.measured, "target_accuracy": 0.25})
  folder = write(tmp_path, results=line(B) + line(A), results_b=line(other))
  refused(
    folder,
    A.run,
    f"{folder}/results.jsonl:2",
    f"{folder}/results_b.jsonl:1",
    "target_accuracy (0.5 and 0.25)",
  )


def test_one_name_for_two_rows_is_refused(tmp_path):
  folder = write(tmp_path, results=line(A) + line(A._replace(row="sdnorm")))
  refused(folder, "different row (comen and sdnorm)")


def test_a_run_knows_its_folder_if_it_has_one(tmp_path):
  folder = write(tmp_path, results=line(A) + line(B))
  own = folder / "runs" / A.run
  own.mkdir(parents=True)
  a, b = records.read([folder])
  assert a.folder == own
  assert b.folder is None


def test_the_copy_that_has_a_folder_is_taken(tmp_path):
  bare = write(tmp_path / "bare", results=line(A))
  full = write(tmp_path / "full", results=line(A))
  (full / "runs" / A.run).mkdir(parents=True)
  for folders in ([bare, full], [full, bare]):
    (found,) = records.read(folders)
    assert found.folder == full / "runs" / A.run


@pytest.mark.parametrize("left", [1, 40, -2])
def test_a_line_cut_off_at_the_end_is_no_record(tmp_path, left):
  folder = write(tmp_path, results=line(A) + line(B)[:left])
  assert records.read([folder]) == [A]


def test_a_line_that_lacks_only_its_break_is_a_record(tmp_path):
  folder = write(tmp_path, results=line(A) + line(B)[:-1])
  assert records.read([folder]) == [A, B]


def test_a_bad_line_in_the_middle_is_told_by_number(tmp_path):
  folder = write(tmp_path, results=line(A) + line(B)[:40] + "\n" + line(C))
  refused(folder, f"{folder}/results.jsonl:2")


def test_empty_lines_are_nothing(tmp_path):
  folder = write(tmp_path, results="\n" + line(A) + "\n\n" + line(B) + "\n\n")
  assert records.read([folder]) == [A, B]


@pytest.mark.parametrize("key", ["target_accuracy", "epochs", "manifest"])
def test_a_record_that_lacks_a_figure_is_told_by_key(tmp_path, key):
  short = {k: v for k, v in A.measured.items() if k != key}
  folder = write(tmp_path, results=line(B) + line(A._replace(measured=short)))
  refused(folder, f"{folder}/results.jsonl:2", f"measured.{key}")


@pytest.mark.parametrize("text", ["[1, 2]\n", '{"run": "a"}\n', "3\n"])
def test_json_that_is_no_record_is_refused(tmp_path, text):
  refused(write(tmp_path, results=text), f"{tmp_path}/results.jsonl:1")


def test_records_from_before_domain_labels_are_of_runs_without(tmp_path):
  old = {k: v for k, v in A.measured.items() if k != "domain_labels"}
  text = line(A._replace(measured=old))
  assert "domain_labels" not in json.loads(text)["measured"]
  folder = write(tmp_path, results=text + line(A))
  (found,) = records.read([folder])
  assert found.measured["domain_labels"] is False


def test_a_folder_without_runs_says_what_to_do(tmp_path):
  refused(tmp_path / "none", tmp_path / "none", "is not a folder")
  refused(tmp_path, tmp_path, "has no finished run", "comen_jax.sweep")
  write(tmp_path, results=line(A)[:30])
  refused(tmp_path, tmp_path, "no finished run")
