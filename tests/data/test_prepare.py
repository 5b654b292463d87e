"""The command that prepares a data set and counts its images."""

import os

import pytest

from comen_jax.data import prepare, registry
from comen_jax.errors import UserError
from data.helpers import draw, start_python


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


def test_images_of_a_folder_are_counted_too(tmp_path, cache, capsys):
  root = draw(
    tmp_path / "mine",
    [f"{d}/{c}/{i}.png" for d in "ab" for c in "xy" for i in range(3)],
  )
  prepare.main(["--dataset", "folder", "--data_dir", str(root), "--size", "8"])
  out = capsys.readouterr().out
  assert "2/1" in out
  assert "There are no published counts" in out
  assert "Note: 10 %" in out


def own_images(root, count=30):
  return draw(
    root, [f"{d}/{c}/{i}.png" for d in "ab" for c in "xy" for i in range(count)]
  )


def test_bad_links_names_and_images_are_listed_at_once(tmp_path, cache):
  root = own_images(tmp_path / "mine")
  (root / "a/x/link.png").symlink_to("nowhere")
  (root / "a/x/tab\t.png").write_bytes(b"")
  (root / "b/y/0.png").write_text("no image")
  (root / "b/y/1.png").write_bytes((root / "b/y/2.png").read_bytes()[:50])
  flags = ["--dataset", "folder", "--data_dir", str(root), "--size", "8"]
  command = start_python(["-m", "comen_jax.data.prepare", *flags])
  out, err = command.communicate(timeout=60)
  assert command.returncode == 2
  assert out == ""
  lines = err.splitlines()
  assert lines[0] == "error: 4 problems with the files:"
  assert len(lines) == 5
  for line, name in zip(
    lines[1:], ["link.png", r"tab\t.png", "y/0.png", "y/1.png"]
  ):
    assert name in line
  assert not os.path.exists(cache / "rows")


def test_the_first_20_bad_images_are_listed_and_the_rest_counted(
  tmp_path, cache
):
  root = own_images(tmp_path / "mine")
  for number in range(23):
    (root / f"a/x/{number}.png").write_text("no image")
  flags = ["--dataset", "folder", "--data_dir", str(root), "--size", "8"]
  with pytest.raises(UserError) as error:
    prepare.main(flags)
  lines = str(error.value).splitlines()
  assert lines[0] == "23 problems with the files:"
  assert all("does not decode" in line for line in lines[1:21])
  assert lines[21:] == ["  and 3 more"]
  # Training says it in one line.
  with pytest.raises(UserError, match="and 22 more such errors") as error:
    registry.load("folder", str(root), 8)
  assert "\n" not in str(error.value)


def test_the_command_warns_of_classes_that_no_source_has(
  tmp_path, cache, capsys
):
  root = own_images(tmp_path / "mine", 3)
  draw(root, ["b/zebra/1.png", "b/zebra/2.png"])
  prepare.main(["--dataset", "folder", "--data_dir", str(root), "--size", "8"])
  (line,) = [
    line
    for line in capsys.readouterr().out.splitlines()
    if line.startswith("Warning")
  ]
  assert "with target b" in line
  assert "zebra" in line
  assert "at most 75.0 %" in line


def test_an_error_is_one_line_and_exit_code_2(tmp_path):
  flags = ["--dataset", "pacs", "--data_dir", str(tmp_path)]
  command = start_python(["-m", "comen_jax.data.prepare", *flags])
  out, err = command.communicate(timeout=60)
  assert command.returncode == 2
  assert out == ""
  assert err.startswith(f"error: data_dir={tmp_path} holds no pacs")
  assert err.count("\n") == 1


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
def test_an_error_for_wrong_flags_is_one_line(flags):
  with pytest.raises(UserError) as error:
    prepare.main(flags)
  assert "\n" not in str(error.value)
