"""Tables of the benchmarks, and the flags that choose them."""

import json

import pytest

from benchmarks import steps
from benchmarks.tables import Table, render
from comen_jax.errors import UserError


def test_table_aligns_numbers_and_hides_lists():
  rows = [
    {"row": "deepall", "ours": 1234.5, "ratio": 0.98765, "rounds": [1, 2]},
    {"row": "encode", "ours": 2.5, "ratio": None, "rounds": [3, 4]},
  ]
  assert render(Table("a step", rows)).splitlines() == [
    "a step",
    "row      ours  ratio",
    "--------------------",
    "deepall  1234  0.988",
    "encode    2.5",
  ]


def test_chosen_sections_are_printed_and_recorded(
  tmp_path, monkeypatch, capsys
):
  seen = []

  def section(how):
    seen.append(how)
    return [Table("made", [{"x": 1.0, "rounds": [1.0]}])]

  monkeypatch.setitem(steps.SECTIONS, "norms", section)
  out = tmp_path / "new" / "steps.json"
  steps.main(["--sections=norms", "--rounds=3", "--quick", "--out", str(out)])
  assert seen == [steps.How(rounds=3, turn=0.1)]
  assert "made\nx" in capsys.readouterr().out
  record = json.loads(out.read_text())
  assert record["norms"] == {"made": [{"x": 1.0, "rounds": [1.0]}]}
  assert record["command"] == (
    "python -m benchmarks.steps --sections=norms --rounds=3 --quick"
  )
  assert str(tmp_path) not in out.read_text()


@pytest.mark.parametrize("flag", ["--sections=nrms", "--rounds=0"])
def test_wrong_flag_is_named(flag):
  with pytest.raises(UserError, match=flag):
    steps.main([flag])
