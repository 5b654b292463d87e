"""The report's command as a user types it, on made-up records."""

import os
import pathlib
import subprocess
import sys

import pytest

from comen_jax.errors import UserError
from comen_jax.report import __main__ as report

from .helpers import ALL, grid, line, log, record, write_run

ROOT = pathlib.Path(__file__).parents[2]

# Seeds average 70 and 71: mean 70.5, deviation the root of a half.
LINE = ["91.0 ± 1.4", "52.0 ± 2.8", "60.0 ± 0.0", "79.0 ± 1.4", "70.5 ± 0.7"]


@pytest.fixture
def sweep(tmp_path):
  records = [
    *grid("comen", ALL),
    *grid("deepall", {"svhn": (0.3,)}),
    *grid("sdnorm", ALL),
    record(target="pasted", dataset="mini_digits", accuracy=0.77),
  ]
  halves = records[::2], records[1::2] + records[:3]  # Three stand twice.
  for i, half in enumerate(halves):
    text = "".join(map(line, half))
    (tmp_path / f"results.{i}-of-2.jsonl").write_text(text)
  return tmp_path


def typed(*arguments):
  done = subprocess.run(
    [sys.executable, "-m", "comen_jax.report", *map(str, arguments)],
    cwd=ROOT,
    env={**os.environ, "XLA_FLAGS": ""},
    capture_output=True,
    text=True,
    timeout=120,
  )
  return done.returncode, done.stdout, done.stderr


def test_one_command_makes_the_whole_report(sweep):
  code, out, err = typed(sweep)
  assert (code, err) == (0, "")
  ours = next(x for x in out.splitlines() if x.startswith("COMEN"))
  assert ours.split("  ")[-1].strip() == "8"
  for value in LINE:
    assert value in ours
  assert "mini digits" in out
  assert f"the page is {sweep}/report/index.html" in out
  assert "18 runs" in out
  assert "Traceback" not in out
  made = {p.name for p in (sweep / "report").iterdir()}
  assert made == {"index.html", "report.md", "report.tex", "figures"}


def test_all_formats_have_the_same_values(sweep, capsys):
  report.main([str(sweep)])
  markdown = (sweep / "report/report.md").read_text("utf-8")
  tex = (sweep / "report/report.tex").read_text("utf-8")
  html = (sweep / "report/index.html").read_text("utf-8")
  for value in LINE:
    assert value in markdown
    assert value.replace("±", r"$\pm$") in tex
  assert "oracle (uses the target)" in markdown
  assert "oracle (uses the target)" in tex
  assert html.startswith("<!doctype html>")
  assert "Ablation on Digits-DG" in markdown
  assert "Ablation on mini digits" not in markdown


def test_switched_off_parts_stand_in_the_ablation_only(sweep, capsys):
  report.main([str(sweep)])
  out = capsys.readouterr().out
  assert "SDNorm" not in out
  assert "DeepAll" in out


def test_a_sweep_of_parts_alone_still_has_a_main_table(tmp_path, capsys):
  text = "".join(map(line, grid("sdnorm", ALL)))
  (tmp_path / "results.jsonl").write_text(text)
  report.main([str(tmp_path)])
  assert "SDNorm" in capsys.readouterr().out


def test_the_same_records_make_the_same_report(sweep, tmp_path, capsys):
  outs = [tmp_path / "a", tmp_path / "b"]
  for out in outs:
    report.main([str(sweep), "--out", str(out)])
  for name in ("report.md", "report.tex", "index.html"):
    first, second = ((out / name).read_bytes() for out in outs)
    assert first == second
  assert not (sweep / "report").exists()
  assert not list(outs[0].glob(".*"))  # No drafts.


def test_several_folders_make_one_report(sweep, tmp_path, capsys):
  more = tmp_path / "more"
  more.mkdir()
  (more / "results.jsonl").write_text(line(record("deepall", "syn", 0, 0.4)))
  report.main([str(sweep), str(more)])
  assert "19 runs" in capsys.readouterr().out
  assert not (more / "report").exists()


def test_bad_input_is_one_line(tmp_path):
  code, _, err = typed(tmp_path / "none")
  assert code == 2
  assert err.startswith(f"error: {tmp_path}/none is not a folder")
  assert err.count("\n") == 1, err


@pytest.mark.parametrize("arguments", [[], ["W", "--oust", "x"]])
def test_bad_flags_point_to_the_help(arguments):
  with pytest.raises(UserError, match="--help lists the flags"):
    report.main(arguments)


def test_a_folder_without_a_sweep_is_left_as_it_was(tmp_path):
  with pytest.raises(UserError, match="has no finished run"):
    report.main([str(tmp_path)])
  assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_told(sweep):
  place = sweep / "file"
  place.write_text("")
  with pytest.raises(UserError, match="give another folder with --out"):
    report.main([str(sweep), "--out", str(place)])


def test_help_says_what_comes_out(capsys):
  with pytest.raises(SystemExit) as stop:
    report.main(["--help"])
  assert stop.value.code == 0
  out = capsys.readouterr().out
  for word in ("index.html", "report.md", "report.tex", "sweep", "--out"):
    assert word in out


def test_a_folder_that_cannot_be_written_is_told(sweep, monkeypatch):
  monkeypatch.setattr(os, "access", lambda path, mode: False)
  with pytest.raises(UserError, match="cannot be written: give another"):
    report.main([str(sweep)])


def test_runs_of_main_and_of_sweep_make_the_same_tables(tmp_path, capsys):
  records = [*grid("comen", ALL), *grid("deepall", ALL)]
  swept, single = tmp_path / "swept", tmp_path / "single"
  swept.mkdir()
  (swept / "results.jsonl").write_text("".join(map(line, records)))
  for one in records:
    write_run(single / one.run, one, row=one.row)
  pages = []
  for folder in (swept, single):
    report.main([str(folder)])
    pages.append((folder / "report" / "report.md").read_text("utf-8"))
  # A record of a sweep may have no folder to list.
  tables = [page.partition("**Runs on")[0] for page in pages]
  assert tables[0] == tables[1]
  assert "Origin" not in tables[0] and "Average" in tables[0]


def test_the_folder_of_one_run_makes_a_report(tmp_path, capsys):
  one = record("comen", "svhn", 0, 0.5)
  folder = write_run(tmp_path / "mine", one, row="comen")
  report.main([str(folder), "--out", str(tmp_path / "out")])
  out = capsys.readouterr().out
  assert "1 run;" in out
  assert "Target accuracy: 50.0 % (6,000 images" in out
  assert "One run: no conclusion" in out
  assert not (folder / "report").exists()
  page = (tmp_path / "out" / "report.md").read_text("utf-8")
  assert "run mine" in page.splitlines()[0]
  assert "COMEN on Digits-DG, target svhn held out, seed 0" in page
  assert "## What next" in page


def test_published_records_have_curves_and_no_other_figure(tmp_path, capsys):
  one = record("comen", "svhn")
  (tmp_path / "results.jsonl").write_text(line(one))
  own = tmp_path / "runs" / one.run
  own.mkdir(parents=True)
  (own / "metrics.jsonl").write_text(log(2, 1))
  report.main([str(tmp_path)])
  page = (tmp_path / "report" / "report.md").read_text("utf-8")
  assert "1 figure in" in capsys.readouterr().out
  assert "## Training curves" in page
  assert "## Confusion matrices" not in page


def test_sweeps_of_other_epochs_lie_in_one_folder(tmp_path, capsys):
  for epochs in (10, 50):
    folder = tmp_path / f"{epochs}_epochs"
    folder.mkdir()
    values = grid("comen", ALL, epochs=epochs)
    (folder / "results.jsonl").write_text("".join(map(line, values)))
  report.main([str(tmp_path)])
  out = capsys.readouterr().out
  assert "Target accuracy (%) on Digits-DG, 10 epochs" in out
  assert "Target accuracy (%) on Digits-DG, 50 epochs" in out
  assert "16 runs" in out


def test_a_report_of_sixteen_runs_takes_three_seconds_at_most(tmp_path):
  code = f"""
import resource
from comen_jax.report import __main__ as report
report.main([{str(ROOT / "results" / "mini_control")!r}, "--out", "out"])
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
    env={**os.environ, "PYTHONPATH": str(ROOT)},
  )  # fmt: skip
  assert "16 runs; the page is out/index.html" in done.stdout, done.stderr
  # Twice the promise, for a machine that is slow or busy.
  assert float(done.stdout.splitlines()[-1]) < 6


def test_the_report_imports_no_model_code():
  code = """
import sys
import comen_jax.report.page
heavy = ["jax", "flax", "sklearn", "optax", "orbax", "tensorflow_datasets"]
names = ["methods.base", "nn", "train", "steps", "experiment", "train_state"]
heavy += [f"comen_jax.{name}" for name in names]
print([name for name in heavy if name in sys.modules])
"""
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
  )
  assert done.stdout == "[]\n", done.stderr
