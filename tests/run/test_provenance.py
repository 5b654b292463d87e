"""The command and the commit that a result records."""

import datetime
import subprocess
import sys
import types

import pytest

from comen_jax.run import provenance


def test_the_date_is_recorded_in_utc():
  before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
  found = datetime.datetime.fromisoformat(provenance.collect()["date"])
  assert found.utcoffset() == datetime.timedelta(0)
  assert before <= found <= datetime.datetime.now(datetime.UTC)


@pytest.mark.parametrize(
  ("module", "program"),
  [
    ("comen_jax.main", "python -m comen_jax.main"),
    ("comen_jax.sweep.__main__", "python -m comen_jax.sweep"),
    ("comen_jax.sweep.worker", "python -m comen_jax.sweep"),
  ],
)
def test_command_is_recorded_as_it_was_typed(module, program, monkeypatch):
  main = types.SimpleNamespace(__spec__=types.SimpleNamespace(name=module))
  monkeypatch.setitem(sys.modules, "__main__", main)
  monkeypatch.setattr(
    sys, "argv", ["/some/where.py", "--config.stage_shares=(0.2, 0.8)", "-x"]
  )
  want = f"{program} '--config.stage_shares=(0.2, 0.8)' -x"
  assert provenance.collect()["command"] == want


def test_changed_code_is_marked_and_changed_records_are_not(tmp_path):
  def git(*words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)

  assert provenance.commit(tmp_path) == ""
  (tmp_path / "code").mkdir()
  (tmp_path / "results").mkdir()
  for place in ("code/a.py", "results/a.json"):
    (tmp_path / place).write_text("old")
  git("init", "-q")
  git("add", "-A")
  git("commit", "-q", "-m", "first")
  clean = provenance.commit(tmp_path / "code")
  assert len(clean) == 12
  (tmp_path / "results" / "a.json").write_text("new")
  (tmp_path / "notes.txt").write_text("not part of it")
  assert provenance.commit(tmp_path / "code") == clean
  (tmp_path / "code" / "a.py").write_text("new")
  assert provenance.commit(tmp_path / "code") == f"{clean}-dirty"
