"""Which checkpoints stay, and that they give back what was saved."""

import collections
import random
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from comen_jax import sharding
from comen_jax.errors import UserError
from comen_jax.metrics import EvalMetrics
from comen_jax.run import checkpointing, manifest, recovery, selection
from comen_jax.run.checkpointing import Checkpoints


def _state(value=0.0):
  return {"w": jnp.full(8, value), "step": jnp.asarray(int(value), jnp.int32)}


def _save_all(folder, ranks, first=1):
  checkpoints = Checkpoints(folder)
  for units, rank in enumerate(ranks, first):
    checkpoints.save(units, _state(units), rank)
  checkpoints.wait()
  checkpoints.close()


def _kept(folder):
  return {int(p.name) for p in folder.iterdir() if p.name.isdigit()}


def _rank(correct, epoch):
  """As validation gives it: `correct` of four answers are right."""
  labels = np.zeros(4, np.int32)
  logits = np.eye(2, dtype=np.float32)[(np.arange(4) >= correct).astype(int)]
  values = EvalMetrics.single_from_model_output(
    logits=jnp.asarray(logits), labels=jnp.asarray(labels), loss=jnp.zeros(4)
  )
  return selection.rank(values, epoch)


def test_a_save_does_not_ask_whether_the_run_is_to_stop(tmp_path, monkeypatch):
  """`stopping` asks, with its own numbers; others would confuse the answer."""
  asked = []
  monkeypatch.setattr(
    multihost_utils, "reached_preemption_sync_point", asked.append
  )
  _save_all(tmp_path, [1.0, 2.0])
  assert _kept(tmp_path) == {1, 2}
  assert asked == []


@pytest.mark.parametrize(
  ("ranks", "kept"),
  [
    ([1.0, 2.0, 3.0, 4.0, 5.0], {4, 5}),
    ([5.0, 4.0, 3.0, 2.0, 1.0], {1, 4, 5}),
    ([2.0, 5.0, 1.0, 4.0, 3.0], {2, 4, 5}),
    ([-1.0, -1.0, 0.0, -1.0, -1.0], {3, 4, 5}),
  ],
)
def test_the_newest_two_and_the_best_are_kept(tmp_path, ranks, kept):
  _save_all(tmp_path, ranks)
  assert _kept(tmp_path) == kept


def test_of_equally_good_ones_the_later_is_kept(tmp_path):
  correct = [3, 2, 3, 1, 3, 0, 2]
  _save_all(tmp_path, [_rank(c, e) for e, c in enumerate(correct)])
  assert _kept(tmp_path) == {5, 6, 7}


def test_no_right_answer_is_still_better_than_no_candidate(tmp_path):
  _save_all(tmp_path, [-1.0, _rank(0, 1), -1.0, -1.0, -1.0])
  assert _kept(tmp_path) == {2, 4, 5}


def test_a_later_start_knows_which_was_the_best(tmp_path):
  _save_all(tmp_path, [1.0, 5.0, 2.0, 3.0])
  assert _kept(tmp_path) == {2, 3, 4}
  _save_all(tmp_path, [2.0, 1.0, 2.0], first=5)
  assert _kept(tmp_path) == {2, 6, 7}
  _save_all(tmp_path, [6.0, 1.0, 2.0], first=8)
  assert _kept(tmp_path) == {8, 9, 10}


def test_latest_is_the_newest_not_the_best(tmp_path):
  checkpoints = Checkpoints(tmp_path / "new")
  assert checkpoints.latest() == 0
  checkpoints.save(1, _state(1), 9.0)
  checkpoints.save(2, _state(2), 1.0)
  checkpoints.wait()
  assert checkpoints.latest() == 2
  checkpoints.close()
  later = Checkpoints(tmp_path / "new")
  assert later.latest() == 2
  assert later.restore(1, _state())["step"] == 1
  assert later.restore(2, _state())["step"] == 2
  later.close()


def test_a_restored_state_is_bit_equal_and_placed_like_the_given_one(tmp_path):
  shardings = sharding.make()
  rng = np.random.default_rng(0)
  values = {
    "kernel": rng.normal(size=(16, 3)).astype(np.float32),
    # What arithmetic on the way would not leave alone.
    "odd": np.array([np.nan, np.inf, -0.0, 1e-45] * 2, np.float32),
    "half": rng.normal(size=8).astype(jnp.bfloat16),
    "domains": rng.integers(-1, 3, 16, np.int32),
    "seen": rng.integers(0, 2, 8).astype(bool),
    "step": np.asarray(7, np.int32),
  }
  saved = jax.device_put(values, shardings.replicated)
  checkpoints = Checkpoints(tmp_path)
  checkpoints.save(3, saved, -1.0)
  checkpoints.wait()

  two = NamedSharding(sharding.make(jax.devices()[:2]).mesh, P("data"))
  places = jax.tree.map(lambda _: shardings.replicated, values)
  places |= {"kernel": shardings.rows, "domains": two}
  like = jax.device_put(jax.tree.map(np.zeros_like, values), places)
  got = checkpoints.restore(3, like)
  checkpoints.close()
  for name, value in values.items():
    array = got[name]
    assert array.dtype == value.dtype
    assert np.asarray(array).tobytes() == value.tobytes()
    assert array.sharding == like[name].sharding, name


def test_a_relative_folder_will_do(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  folder = tmp_path / "run"
  _save_all(folder.relative_to(tmp_path), [1.0])
  assert _kept(folder) == {1}


def _flip(place, rng):
  data = bytearray(place.read_bytes())
  bit = rng.randrange(8 * len(data))
  data[bit // 8] ^= 1 << bit % 8
  place.write_bytes(data)


def _resume(folder):
  checkpoints = Checkpoints(folder)
  units, state = checkpoints.resume(_state())
  checkpoints.close()
  return units, state


def test_every_checkpoint_has_its_checksums_when_the_next_is_saved(tmp_path):
  checkpoints = Checkpoints(tmp_path)
  for units in range(1, 5):
    checkpoints.save(units, _state(units), 1.0)
    for before in range(max(1, units - 1), units):
      manifest.verify(tmp_path / str(before))
  checkpoints.wait()
  manifest.verify(tmp_path / "4")
  checkpoints.close()


def test_without_checkpoints_a_run_starts_at_the_given_state(tmp_path):
  units, state = _resume(tmp_path)
  assert (units, int(state["step"])) == (0, 0)


def test_any_flip_or_cut_is_found_and_the_one_before_is_used(tmp_path, capsys):
  """Damages each file of a real checkpoint; 90 flips in all."""
  _save_all(tmp_path / "whole", [1.0, 1.0, 1.0])
  rng = random.Random(0)
  newest = tmp_path / "whole" / "3"
  names = [p.relative_to(newest) for p in newest.rglob("*") if p.is_file()]
  names = [name for name in names if (newest / name).stat().st_size]
  assert len(names) > 5
  for n in range(90):
    folder = tmp_path / "one"
    shutil.copytree(newest, folder)
    _flip(folder / names[n % len(names)], rng)
    with pytest.raises(manifest.DamagedError):
      manifest.verify(folder)
    shutil.rmtree(folder)
  for name in names:
    for damage in ("flip", "cut", "remove"):
      folder = tmp_path / "copy"
      shutil.copytree(tmp_path / "whole", folder)
      place = folder / "3" / name
      if damage == "flip":
        _flip(place, rng)
      elif damage == "cut":
        place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
      else:
        place.unlink()
      units, state = _resume(folder)
      assert (units, int(state["step"])) == (2, 2), (name, damage)
      said = capsys.readouterr().out
      lost = (name.name, damage) == (manifest.NAME, "remove")
      assert f"{folder / '3'} is {'incomplete' if lost else 'damaged'}" in said
      assert said.count("\n") == 1
      if damage == "flip":  # The next save of that number works.
        _save_all(folder, [1.0], first=3)
        assert _resume(folder)[0] == 3
      shutil.rmtree(folder)


def test_whatever_a_restore_raises_the_one_before_is_used(
  tmp_path, monkeypatch, capsys
):
  _save_all(tmp_path, [1.0, 1.0, 1.0])
  restore, tries = Checkpoints._restore, collections.Counter()

  def failing(self, units, like):
    tries[units] += 1
    if units == 3:
      raise KeyError("odd\nerror")
    return restore(self, units, like)

  monkeypatch.setattr(Checkpoints, "_restore", failing)
  checkpoints = Checkpoints(tmp_path)
  units, state = checkpoints.resume(_state())
  assert (units, int(state["step"])) == (2, 2)
  assert checkpoints.latest() == 2
  checkpoints.save(3, _state(3), 1.0)
  checkpoints.close()
  assert recovery.numbers(tmp_path) == [2, 3]
  assert tries == {3: 1, 2: 1}
  assert "3 is damaged ('odd\\nerror')" in capsys.readouterr().out


def test_if_no_restore_works_nothing_is_moved(tmp_path, monkeypatch):
  _save_all(tmp_path, [1.0, 1.0, 1.0])

  def failing(self, units, like):
    raise ValueError("another structure")

  monkeypatch.setattr(Checkpoints, "_restore", failing)
  checkpoints = Checkpoints(tmp_path)
  with pytest.raises(UserError, match=r"no checkpoint in .*other structure"):
    checkpoints.resume(_state())
  checkpoints.close()
  assert recovery.numbers(tmp_path) == [2, 3]


def test_a_kill_between_commit_and_checksums_costs_one_unit(
  tmp_path, monkeypatch, capsys
):
  _save_all(tmp_path, [1.0, 1.0])
  monkeypatch.setattr(manifest, "write", lambda folder: None)
  _save_all(tmp_path, [1.0], first=3)
  monkeypatch.undo()
  assert _resume(tmp_path)[0] == 2
  assert f"{tmp_path / '3'} is incomplete" in capsys.readouterr().out
  _save_all(tmp_path, [1.0], first=3)
  assert _resume(tmp_path)[0] == 3


def test_checksums_that_cannot_be_written_are_an_error_of_the_save(
  tmp_path, monkeypatch
):
  def full(folder):
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(manifest, "write", full)
  checkpoints = Checkpoints(tmp_path)
  checkpoints.save(1, _state(1), 1.0)
  with pytest.raises(OSError, match="No space left"):
    checkpoints.wait()


def test_a_damaged_chosen_checkpoint_is_one_line_that_says_what_to_do(tmp_path):
  _save_all(tmp_path, [1.0, 1.0])
  checkpoints = Checkpoints(tmp_path)
  _flip(tmp_path / "1" / "metrics" / "metrics", random.Random(0))
  shutil.rmtree(tmp_path / "2")
  for units, reason in ((1, "metrics has changed"), (2, "it is missing")):
    with pytest.raises(UserError, match=reason) as caught:
      checkpoints.restore(units, _state())
    text = str(caught.value)
    assert str(tmp_path / str(units)) in text and "another --workdir" in text
    assert "\n" not in text


def test_a_full_disk_is_seen_before_a_save(tmp_path, monkeypatch):
  checkpoints = Checkpoints(tmp_path)
  checkpoints.save(1, _state(1), 1.0)
  usage = collections.namedtuple("usage", ["free"])
  monkeypatch.setattr(
    checkpointing.shutil, "disk_usage", lambda _: usage(1024**2)
  )
  with pytest.raises(UserError, match=r"1\.0 MiB free, .* needs 1\.0"):
    checkpoints.save(2, _state(2), 1.0)
  monkeypatch.undo()
  checkpoints.close()
  assert _resume(tmp_path)[0] == 1


@pytest.mark.parametrize("error", [None, UserError, KeyboardInterrupt])
def test_however_a_run_stops_its_last_save_is_finished(tmp_path, error):
  checkpoints = Checkpoints(tmp_path)
  try:
    with checkpoints:
      checkpoints.save(1, _state(1), 1.0)
      if error:
        raise error("stop")
  except (UserError, KeyboardInterrupt):
    assert error
  manifest.verify(tmp_path / "1")


def test_what_a_killed_save_left_is_removed(tmp_path):
  _save_all(tmp_path, [1.0, 1.0])
  left = tmp_path / "3.orbax-checkpoint-tmp"
  shutil.copytree(tmp_path / "2", left)
  _save_all(tmp_path, [1.0], first=3)
  assert _kept(tmp_path) == {2, 3}
  left = tmp_path / "9.orbax-checkpoint-tmp"
  shutil.copytree(tmp_path / "2", left)
  _save_all(tmp_path, [1.0], first=4)
  assert not left.exists()
