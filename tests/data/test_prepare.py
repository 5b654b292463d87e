"""The command that prepares and counts."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from comen_jax.data import counts, prepare, registry
from comen_jax.data.dataset import Dataset
from comen_jax.errors import UserError
from data.helpers import draw

ROOT = pathlib.Path(__file__).parents[2]


def tiny(cells):
  """A data set of as many pictures as [domain, class, split] says."""
  rows = [i for i, n in np.ndenumerate(cells) for _ in range(n)]
  domains, labels, splits = np.array(rows).T
  return Dataset(
    name="tiny",
    images=np.zeros((len(rows), 1, 1, 3), np.uint8),
    labels=labels.astype(np.int32),
    domains=domains.astype(np.int32),
    splits=splits.astype(np.uint8),
    class_names=("cat", "dog"),
    domain_names=("photo", "sketch"),
    manifest="",
    default_target="photo",
  )


CELLS = np.array([[[3, 1], [4, 2]], [[5, 1], [6, 2]]])


def test_counts_are_of_every_cell():
  np.testing.assert_array_equal(counts.count(tiny(CELLS)), CELLS)


def test_the_table_says_that_all_is_as_published():
  text = counts.report(
    tiny(CELLS),
    {"photo": (7, 3), "sketch": 14},
    {("photo", "cat"): (3, 1), ("sketch", "dog"): 8},
  )
  assert "3/1" in text
  assert "*" not in text
  assert "All counts are the published ones" in text


def test_the_table_says_what_differs():
  text = counts.report(
    tiny(CELLS),
    {"photo": (6, 4), "sketch": 15},
    {("photo", "cat"): (2, 2), ("sketch", "dog"): 8},
  )
  lines = text.splitlines()
  assert lines[0].split() == ["train/val", "photo", "sketch"]
  assert lines[1].split() == ["cat", "3/1*", "5/1"]
  assert lines[2].split() == ["dog", "4/2", "6/2"]
  assert lines[3].split() == ["all", "classes", "7/3*", "11/3*"]
  assert lines[4].split() == ["published", "6/4", "15"]
  assert "photo 7/3 (published 6/4)" in lines[-1]
  assert "sketch 14 (published 15)" in lines[-1]
  assert "photo cat 3/1 (published 2/2)" in lines[-1]
  assert "dog" not in lines[-1]


@pytest.mark.parametrize("name", registry.BENCHMARKS)
def test_published_counts_agree_with_themselves(name):
  spec = registry.BENCHMARKS[name]
  both = lambda count: sum(count) if isinstance(count, tuple) else count
  assert set(spec.published_domains) == set(spec.domains)
  assert spec.default_target in spec.domains
  if spec.published_cells:
    for domain, count in spec.published_domains.items():
      cells = (spec.published_cells[domain, c] for c in spec.classes)
      assert sum(map(both, cells)) == both(count)
  totals = sum(map(both, spec.published_domains.values()))
  want = {
    "digits_dg": 24_000, "pacs": 9_991, "vlcs": 10_729, "office_home": 15_588,
  }  # fmt: skip
  assert totals == want[name]


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
