"""Two checkouts, one after the other."""

import pytest

from benchmarks import versions
from benchmarks.made import ROOT
from comen_jax.errors import UserError


class Toy:
  """Answers as a worker does; the checkout `old` takes twice as long."""

  def __init__(self, module, folder):
    self._seconds = 1.0 if folder == ROOT else 2.0

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass

  def prepare(self, name):
    return {}

  def run(self, name, steps):
    return self._seconds


def test_a_ratio_below_one_is_a_gain(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(versions, "Worker", Toy)
  (tmp_path / "benchmarks").mkdir()
  (tmp_path / "benchmarks" / "jax_steps.py").touch()
  versions.main([f"--before={tmp_path}", "--rows", "digits/encode"])
  assert capsys.readouterr().out.splitlines()[-1].split() == [
    "digits/encode", "2000", "1000", "0.5",
  ]  # fmt: skip


def test_a_folder_without_a_checkout_is_refused(tmp_path):
  with pytest.raises(UserError, match="--before"):
    versions.main([f"--before={tmp_path}"])
