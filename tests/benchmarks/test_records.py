"""Records that leave a sweep's folder and come back to another one."""

import json
import pathlib

from benchmarks import records
from comen_jax.run.workdir import read_result


def make_sweep(folder: pathlib.Path) -> None:
  """One finished run, and one that was stopped."""
  for name in ("done", "begun"):
    run = folder / "runs" / name
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"name": name}))
    (run / "metrics.jsonl").write_text('{"epoch": 1}\n')
  line = {"run": "done", "measured": {"seed": 1}, "row": "comen"}
  (folder / "results.0-of-1.jsonl").write_text(json.dumps(line) + "\n")


def files(folder: pathlib.Path) -> list[str]:
  found = (p for p in folder.rglob("*") if p.is_file())
  return sorted(str(p.relative_to(folder)) for p in found)


def test_only_what_finished_is_kept(tmp_path):
  make_sweep(tmp_path / "sweep")
  records.keep(tmp_path / "sweep", tmp_path / "out")
  assert files(tmp_path / "out") == [
    "results.0-of-1.jsonl",
    "runs/done/config.json",
    "runs/done/metrics.jsonl",
  ]


def test_a_kept_run_is_finished_in_a_new_folder(tmp_path):
  make_sweep(tmp_path / "sweep")
  records.keep(tmp_path / "sweep", tmp_path / "out")
  records.bring_back(tmp_path / "out", tmp_path / "new")
  found = read_result(tmp_path / "new" / "runs" / "done")
  assert found == {"measured": {"seed": 1}, "row": "comen"}
  assert not (tmp_path / "new" / "runs" / "begun").exists()
  records.keep(tmp_path / "new", tmp_path / "again")
  assert files(tmp_path / "again") == files(tmp_path / "out")


def test_a_run_that_is_there_stays_as_it_is(tmp_path):
  make_sweep(tmp_path / "sweep")
  records.keep(tmp_path / "sweep", tmp_path / "out")
  before = files(tmp_path / "sweep")
  records.bring_back(tmp_path / "out", tmp_path / "sweep")
  assert files(tmp_path / "sweep") == before


def test_a_record_that_was_kept_is_neither_lost_nor_replaced(tmp_path):
  make_sweep(tmp_path / "sweep")
  out = tmp_path / "out" / "results.0-of-1.jsonl"
  records.keep(tmp_path / "sweep", tmp_path / "out")
  line = out.read_text()
  other = line.replace("done", "other")
  out.write_text(other + line.replace("comen", "newer"))
  records.keep(tmp_path / "sweep", tmp_path / "out")
  assert out.read_text() == other + line.replace("comen", "newer")
  out.write_text(other)
  records.keep(tmp_path / "sweep", tmp_path / "out")
  assert out.read_text() == other + line
