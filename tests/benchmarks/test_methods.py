"""The table of docs/methods.md is what registry and record say."""

import json
import pathlib

import pytest

from benchmarks import methods, methods_table
from benchmarks.alternate import How, Times
from comen_jax.errors import UserError
from comen_jax.methods.registry import METHODS

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods.md").read_text()
RECORD = ROOT / "results" / "methods.json"


def test_the_page_has_the_table_of_the_registry_and_the_record():
  record = json.loads(RECORD.read_text())
  command = "python -m benchmarks.methods --table --page docs/methods.md"
  assert methods_table.render(record) in PAGE, f"{command} puts it there"


@pytest.mark.parametrize("name", METHODS)
def test_the_page_says_what_each_method_does(name):
  text = PAGE.partition("## What each one does")[2]
  assert f"`{name}`" in text, f"add a line on {name} to docs/methods.md"


def test_the_table_is_that_of_the_record_and_none_is_made_without_one(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "page.md").write_text(PAGE)
  command = ["--table", "--page", "page.md"]
  with pytest.raises(UserError, match=r"results/methods\.json; run it"):
    methods.main(command)
  (tmp_path / "results").mkdir()
  (tmp_path / "results" / "methods.json").write_text(RECORD.read_text())
  methods.main(command)
  assert (tmp_path / "page.md").read_text() == PAGE
  assert "not measured" not in capsys.readouterr().out


def line(table: str, name: str) -> list[str]:
  (found,) = [x for x in table.splitlines() if f"| `{name}` |" in x]
  return [cell.strip() for cell in found.split("|")[1:-1]]


def test_a_cost_is_the_ratio_of_each_stage():
  stages = {"encode": {"ratio": 1.256}, "warmup": {"ratio": 1.0}}
  record = {
    "methods": {
      "comen": {"stages": stages},
      "vrex": {"stages": {"train": {"ratio": 1.02}}},
    }
  }
  table = methods_table.render(record)
  assert line(table, "comen")[-1] == "warmup 1.00, encode 1.26"
  assert line(table, "vrex")[2:] == [
    "uses them", "the backbone's", "none, batch", "all", "1.02",
  ]  # fmt: skip
  assert line(table, "fact")[-1] == "not measured"
  record["methods"]["deepall_bn_randconv"] = {
    "stages": {"train": {"ratio": 1.1}}
  }
  table = methods_table.render(record)
  assert line(table, "deepall_bn")[-1] == "not measured"
  assert line(table, "deepall_bn`, `augment=randconv")[-1] == "1.10"
  assert line(table, "sagnet")[-2] == "all but alexnet"


def test_a_method_is_compared_with_deepall_of_its_norm():
  times = Times(
    {
      "deepall/train": [1.0, 2.0],
      "deepall_bn/train": [2.0, 4.0],
      "sagnet/train": [6.0, 12.0],
    }
  )
  found = methods._of("sagnet", "batch", times)
  assert found["baseline"] == "deepall_bn"
  assert found["stages"] == {"train": {"ms": 9000.0, "ratio": 3.0}}


@pytest.mark.slow
def test_steps_are_measured_for_real():
  how = How(rounds=1, turn=0.01, only="_randconv")
  found = methods.measure(how, batch=8)["methods"]
  augmented = "deepall_bn_randconv"
  assert found.keys() == {
    "deepall", "deepall_bn", "comen_randconv", augmented,
  }  # fmt: skip
  assert found[augmented]["baseline"] == "deepall_bn"
  assert found["deepall"]["stages"]["train"]["ratio"] == 1
  assert found[augmented]["stages"]["train"]["ms"] > 0
