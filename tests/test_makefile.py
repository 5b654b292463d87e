"""`make` finds a Python: the newest that is supported, or it says why not."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(
  shutil.which("make") is None, reason="make is absent"
)


def make(folder: pathlib.Path, pythons: dict[str, bool], *arguments: str):
  """Runs make in `folder`, where only these Pythons are; True: supported."""
  programs = folder / "programs"
  programs.mkdir()
  for name, supported in pythons.items():
    # It answers every question, and otherwise only says that it was called.
    answer = f'[ "$1" = -c ] && exit {int(not supported)}'
    code = f'#!/bin/sh\n{answer}\necho {name} "$@"\n'
    (programs / name).write_text(code)
    (programs / name).chmod(0o755)
  for name in ("sh", "make", "echo"):
    (programs / name).symlink_to(shutil.which(name))
  shutil.copy(ROOT / "Makefile", folder)
  return subprocess.run(
    [programs / "make", ".venv/bin/python", *arguments],
    cwd=folder, env={"PATH": str(programs)}, text=True, capture_output=True,
  )  # fmt: skip


@pytest.mark.parametrize(
  ("pythons", "taken"),
  [
    ({"python3": True}, "python3"),
    ({"python3": True, "python3.12": True, "python3.13": True}, "python3.13"),
    ({"python3": True, "python3.11": True, "python3.12": True}, "python3.12"),
    # A shim of pyenv is there although its Python is not.
    ({"python3": True, "python3.11": True, "python3.13": False}, "python3.11"),
    ({"python3": False, "python3.14": True, "python3.11": True}, "python3.11"),
  ],
)
def test_the_newest_supported_python_is_taken(pythons, taken, tmp_path):
  done = make(tmp_path, pythons)
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines()[-1] == f"{taken} -m venv .venv"


@pytest.mark.parametrize(
  ("pythons", "arguments", "text"),
  [
    ({}, (), "there is no Python 3.11 to 3.13: give make PYTHON="),
    ({"python3": False}, (), "there is no Python 3.11 to 3.13"),
    ({"python3": True, "old": False}, ("PYTHON=old",), "old is not Python 3"),
    ({"python3": True}, ("PYTHON=nowhere",), "nowhere is not Python 3.11 to"),
  ],
)
def test_an_unsupported_python_is_one_line(pythons, arguments, text, tmp_path):
  done = make(tmp_path, pythons, *arguments)
  assert done.returncode != 0
  (line,) = done.stdout.splitlines()
  assert line.startswith("error: ") and text in line
  # What make adds, and nothing else.
  assert all(s.startswith("make: ***") for s in done.stderr.splitlines())
  assert not (tmp_path / ".venv").exists()


def test_the_makefile_and_the_package_support_the_same_pythons(monkeypatch):
  code = next(
    line.partition(":= ")[2]
    for line in (ROOT / "Makefile").read_text().splitlines()
    if line.startswith("IS_SUPPORTED")
  )
  found = []
  for minor in range(9, 17):
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
      patch.setattr(sys, "version_info", (3, minor, 0))
      exec(code, {})
    if not end.value.code:
      found.append(minor)
  supported = f'">=3.{found[0]},<3.{found[-1] + 1}"'
  assert supported in (ROOT / "pyproject.toml").read_text()
