"""Damaged files of one run: one line each, and the report has the rest."""

import json
import shutil

import numpy as np
import pytest

from comen_jax.report import __main__ as report
from comen_jax.report import records

from .helpers import arrays, line, log, record, refused, write_run

FILES = ("metrics.jsonl", "config.json", "analysis.npz")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
  """Two whole seeds of a run on data of our own."""
  root = tmp_path_factory.mktemp("runs")
  own = {"dataset": "own", "target": "photo", "sources": ["ink", "paint"]}
  for seed in (0, 1):
    made = record("comen", seed=seed, num_domains=2, **own)
    config = {"method": "comen", "norm": "", "learning_rate": 0.05}
    folder = write_run(root / f"seed{seed}", made, "comen", config)
    (folder / "metrics.jsonl").write_text(log(4, 3, 2, 1))
    np.savez(folder / "analysis.npz", **arrays(seed=seed))
  return root


def damage(path, how):
  data = path.read_bytes()
  if how == "garbage":
    path.write_bytes(b"\0\xff{[" * 40 + b"\n" + data)
  elif how == "cut":
    path.write_bytes(data[: len(data) // 2].replace(b"\n", b"", 1))
  else:
    path.write_bytes(b"")


@pytest.mark.parametrize(
  ("name", "how"), list(zip(FILES, ("garbage", "cut", "cut")))
)
def test_one_line_names_the_file_and_the_rest_is_drawn(
  runs, tmp_path, capsys, name, how
):
  root = tmp_path / "runs"
  shutil.copytree(runs, root)
  damage(root / "seed0" / name, how)
  report.main([str(root)])
  _, err = capsys.readouterr()
  assert err.count("\n") == 1, err
  assert err.startswith("warning: ") and str(root / "seed0" / name) in err
  page = (root / "report" / "report.md").read_text("utf-8")
  assert "2 finished runs" in page
  assert "## Files that could not be read" in page
  for title in ("Training curves", "Confusion matrices", "Prototype graph"):
    assert f"## {title}" in page
  # The other seed takes the place of a damaged one.
  assert ("COMEN 1 seed." in page) == (name == "metrics.jsonl")
  assert ("COMEN (seed 1)" in page) == (name == "analysis.npz")


def test_all_three_of_one_run_are_three_lines(runs, tmp_path, capsys):
  shutil.copytree(runs / "seed0", tmp_path / "run")
  for name in FILES:
    damage(tmp_path / "run" / name, "garbage")
  report.main([str(tmp_path / "run")])
  err = capsys.readouterr().err
  assert err.count("\n") == 3
  assert all(f"{tmp_path}/run/{name}" in err for name in FILES)
  page = (tmp_path / "run" / "report" / "report.md").read_text("utf-8")
  assert "One run: no conclusion" in page


def test_an_empty_config_or_analysis_is_told_and_an_empty_log_has_no_curve(
  runs, tmp_path, capsys
):
  shutil.copytree(runs / "seed0", tmp_path / "run")
  for name in FILES:
    damage(tmp_path / "run" / name, "empty")
  report.main([str(tmp_path / "run")])
  err = capsys.readouterr().err
  assert err.count("\n") == 2
  assert "config.json" in err and "analysis.npz" in err
  page = (tmp_path / "run" / "report" / "report.md").read_text("utf-8")
  assert "## Training curves" not in page


@pytest.mark.parametrize("how", ["garbage", "cut", "empty", "no record"])
def test_a_damaged_result_leaves_out_its_run_alone(runs, tmp_path, how):
  root = tmp_path / "runs"
  shutil.copytree(runs, root)
  place = root / "seed0" / "result.json"
  if how == "no record":
    place.write_text('{"measured": {"dataset": "own"}, "row": "comen"}')
  else:
    damage(place, how)
  told = []
  (found,) = records.read([root], told.append)
  assert found.run == "seed1"
  (said,) = told
  assert str(place) in said and "goes on without this run" in said
  # Alone, there is nothing to report.
  refused(root / "seed0", place)


def test_a_run_with_a_line_stays_if_its_result_is_damaged(runs, tmp_path):
  lines = []
  for name in ("seed0", "seed1"):
    folder = tmp_path / "runs" / name
    shutil.copytree(runs / name, folder)
    measured = json.loads((folder / "result.json").read_text())["measured"]
    lines.append(line(record("comen", run=name)._replace(measured=measured)))
  (tmp_path / "results.jsonl").write_text("".join(lines))
  place = tmp_path / "runs" / "seed0" / "result.json"
  damage(place, "cut")
  told = []
  found = records.read([tmp_path], told.append)
  # Its figures are still drawn from its folder.
  assert [r.folder for r in found] == [place.parent, folder]
  (said,) = told
  assert str(place) in said and "line of results.jsonl" in said
