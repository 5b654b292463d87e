"""The command that prepares and counts."""

import os
import pathlib
import subprocess
import sys

import pytest

from comen_jax.data import prepare, registry
from comen_jax.errors import UserError
from data.helpers import draw

ROOT = pathlib.Path(__file__).parents[2]


def test_the_command_prepares_what_training_will_find(
  tiny_digits_dg, cache, capsys
):
  flags = ["--dataset", "digits_dg", "--data_dir", str(tiny_digits_dg)]
  prepare.main(flags)
  out = capsys.readouterr().out
  assert "12/4*" in out
  assert "mnist 120/40 (published 4800/1200)" in out
  assert "640 images" in out
  rows = os.listdir(cache / "rows")
  dataset = registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert f"manifest  {dataset.manifest}" in out
  assert os.listdir(cache / "rows") == rows
  assert str(cache / "rows" / rows[0]) in out


def test_a_folder_is_counted_too(tmp_path, cache, capsys):
  root = draw(
    tmp_path / "mine",
    [f"{d}/{c}/{i}.png" for d in "ab" for c in "xy" for i in range(3)],
  )
  prepare.main(["--dataset", "folder", "--data_dir", str(root), "--size", "8"])
  out = capsys.readouterr().out
  assert "2/1" in out
  assert "No counts are published" in out
  assert "Note: 10 %" in out


def test_errors_are_one_line_and_code_2(tmp_path):
  command = [sys.executable, "-m", "comen_jax.data.prepare"]
  flags = ["--dataset", "pacs", "--data_dir", str(tmp_path)]
  done = subprocess.run(
    [*command, *flags], cwd=ROOT, capture_output=True, text=True
  )
  assert done.returncode == 2
  assert done.stdout == ""
  assert done.stderr.startswith(f"error: data_dir={tmp_path} holds no pacs")
  assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
  "flags",
  [
    [],
    ["--dataset", "pacs"],
    ["--dataset", "imagenet", "--data_dir", "x"],
    ["--datset", "pacs", "--data_dir", "x"],
    ["--dataset", "pacs", "--data_dir", "x", "--size", "big"],
    ["--dataset", "pacs", "--data_dir", ""],
    ["--dataset", "folder", "--data_dir", ""],
    ["--dataset", "pacs", "--data_dir", "x", "--size", "-1"],
  ],
)
def test_wrong_flags_are_told_in_one_line(flags):
  with pytest.raises(UserError) as error:
    prepare.main(flags)
  assert "\n" not in str(error.value)
