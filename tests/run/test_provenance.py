"""The command that a result records."""

import datetime
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
