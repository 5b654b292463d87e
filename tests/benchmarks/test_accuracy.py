"""The sweeps of the tables, as far as they go without data."""

import pytest
from conftest import ROOT, load_config

from benchmarks import accuracy, records
from comen_jax.errors import UserError
from comen_jax.report import grouping
from comen_jax.report.records import read
from comen_jax.report.statistics import average, percent
from comen_jax.report.tables.accuracy import BEST_VALIDATION
from comen_jax.sweep import grid
from comen_jax.variants import ABLATION


@pytest.mark.parametrize("name", accuracy.TABLES)
def test_every_sweep_is_one_that_can_be_trained(name):
  given = dict(
    flag.removeprefix("--").split("=", 1)
    for flag in accuracy.flags(name, "D", "", 1)
    if flag.startswith("--") and "=" in flag
  )
  config, flags = load_config(accuracy.TABLES[name].config), {}
  for setting in accuracy.TABLES[name].settings:
    key, value = setting.split("=")
    *blocks, last = key.split(".")
    block = config[blocks[0]] if blocks else config
    block[last] = flags[key] = type(block[last])(value)
  config.pretrained = ""
  grid.check(
    config,
    given.get("seeds", "0"),
    given["methods"],
    given.get("num_domains", ""),
  )
  grid.check_given(flags, given["methods"], config)
  mini = accuracy.TABLES[name].folder.startswith("mini")
  assert given.get("config.data_dir") == (None if mini else "D")


def test_sweeps_are_done_in_order(monkeypatch, tmp_path, capsys):
  done = []
  sweep = lambda flags, work, out: done.append((work.name, out.name))
  monkeypatch.setattr(records, "sweep", sweep)
  words = ["--data_dir=D", f"--work={tmp_path}", "--only", "digits", "ablation"]
  accuracy.main(words)
  assert done == [("digits_dg", "digits_dg")] * 2
  with pytest.raises(UserError, match="--weights"):
    accuracy.main(["--data_dir=D"])
  with pytest.raises(UserError, match="--weights"):
    accuracy.main(["--data_dir=D", "--only", "pacs_15"])
  with pytest.raises(UserError, match="--data_dir"):
    accuracy.main(["--only", "mini_rivals", "digits"])


def test_sweeps_that_share_a_folder_have_runs_of_different_names():
  # A run is named by its data, target, method, M and seed, not its settings.
  settings = {}
  for sweep in accuracy.TABLES.values():
    same = (sweep.config, sweep.settings)
    assert settings.setdefault(sweep.folder, same) == same


def test_the_rivals_on_digits_dg_are_all_but_what_another_sweep_has():
  config = load_config("digits")
  rows = {
    name: set(grid.row_names(_methods(name), config))
    for name in ("digits", "mini_rivals", "rivals")
  }
  assert rows["rivals"] == rows["mini_rivals"] - rows["digits"]
  assert rows["mini_rivals"] - rows["rivals"] == {"deepall_bn", "comen"}


def _methods(name: str) -> str:
  (flag,) = (f for f in accuracy.TABLES[name].rows if "--methods=" in f)
  return flag.removeprefix("--methods=")


@pytest.mark.parametrize("folder", ["digits_dg", "mini_rivals"])
def test_the_page_has_the_average_of_every_method_in_the_records(folder):
  lines = (ROOT / "docs" / "results.md").read_text().splitlines()
  (comparison,) = grouping.comparisons(read([ROOT / "results" / folder]))
  for group in comparison.groups:
    whole = average(group.values(BEST_VALIDATION), comparison.targets)
    if group.setting.row not in ABLATION:
      title = group.title.removesuffix(", M = 3")
      assert any(
        line.startswith(f"| {title} |") and f"| {percent(whole)} |" in line
        for line in lines
      ), f"docs/results.md: {title} {percent(whole)}"
