"""What a stop within an epoch leaves, and when a start goes on from it."""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax import sharding
from comen_jax.run.interruption import Interruption


@flax.struct.dataclass
class State:
  values: jax.Array
  step: jax.Array


def state_at(step: int) -> State:
  state = State(jnp.arange(1000.0) + step, jnp.int32(step))
  return jax.device_put(state, sharding.make().replicated)


def stopped(path) -> Interruption:
  """Leaves a run that was stopped after two steps of unit 4."""
  history = [{"loss": jnp.float32(0.1)}, {"loss": jnp.float32(1 / 3)}]
  Interruption(path).save(4, state_at(12), history)
  return Interruption(path)


def test_a_start_goes_on_after_the_last_step(tmp_path, capsys):
  found = stopped(tmp_path)
  state = found.restore(4, state_at(10))
  np.testing.assert_array_equal(state.values, state_at(12).values)
  assert found.history(4) == [
    {"loss": float(np.float32(0.1))},
    {"loss": float(np.float32(1 / 3))},
  ]
  assert found.history(5) == []
  assert "after step 12" in capsys.readouterr().out


def test_it_stays_until_a_later_unit_is_done(tmp_path):
  found = stopped(tmp_path)
  found.restore(4, state_at(10))
  found.unit_done(4)  # Its checkpoint may not be on disk yet.
  assert (tmp_path / "interrupted").exists()
  found.unit_done(5)
  assert not (tmp_path / "interrupted").exists()


def test_a_stop_before_any_step_leaves_nothing(tmp_path):
  Interruption(tmp_path).save(4, state_at(10), [])
  assert not (tmp_path / "interrupted").exists()


def test_a_stop_without_a_new_step_leaves_what_there_was(tmp_path):
  found = stopped(tmp_path)
  state = found.restore(4, state_at(10))
  found.save(4, state, found.history(4))
  assert Interruption(tmp_path).restore(4, state_at(10)).step == 12


def flip(folder):
  place = max(folder.rglob("*"), key=lambda p: p.is_file() and p.stat().st_size)
  data = bytearray(place.read_bytes())
  data[len(data) // 2] ^= 1
  place.write_bytes(data)


def cut(folder):
  (folder / "sha256.json").unlink()


@pytest.mark.parametrize("damage", [flip, cut])
def test_a_damaged_one_is_ignored(damage, tmp_path, capsys):
  found = stopped(tmp_path)
  damage(tmp_path / "interrupted")
  state = found.restore(4, state_at(10))
  assert (state.step, found.history(4)) == (10, [])
  assert "is ignored: it is damaged" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("unit", "step", "said"),
  [
    (5, 15, ""),  # The epoch is done: nothing to say.
    (3, 5, "is ignored: the checkpoint that it goes on from is gone"),
    (4, 9, "is ignored: it belongs to another step"),
  ],
)
def test_one_of_another_epoch_is_ignored(unit, step, said, tmp_path, capsys):
  found = stopped(tmp_path)
  state = found.restore(unit, state_at(step))
  assert (state.step, found.history(unit)) == (step, [])
  out = capsys.readouterr().out
  assert said in out if said else not out
