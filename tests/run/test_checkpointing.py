"""Which checkpoints stay, and that they give back what was saved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from comen_jax import sharding
from comen_jax.metrics import EvalMetrics
from comen_jax.run import selection
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
