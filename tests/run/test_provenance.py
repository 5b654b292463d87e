"""The command that a result records."""

import sys
import types

import pytest

from comen_jax.run import provenance


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
