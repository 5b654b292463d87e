"""SIGTERM: what is done is saved, and the same command goes on from there."""

import os
import re
import signal
import time

import commands
import pytest
from conftest import make_tiny_config
from test_main import CONFIG, measured, read_log, stops_at

from comen_jax import stopping, train
from comen_jax.errors import STOPPED, Stopped

MODULE = "comen_jax.main"


@pytest.fixture
def fresh(monkeypatch):
  """Gives a test a fresh notice, and removes the handler afterwards."""
  monkeypatch.setattr(stopping, "_notice", stopping._Notice())
  before = signal.getsignal(signal.SIGTERM)
  yield
  signal.signal(signal.SIGTERM, before)


def terminate():
  os.kill(os.getpid(), signal.SIGTERM)


def test_while_nothing_is_unsaved_a_stop_is_at_once(fresh):
  stopping.listen()
  with pytest.raises(Stopped) as caught:
    terminate()
  assert caught.value.code == STOPPED == 75


def test_unsaved_work_is_stopped_at_the_next_check(fresh):
  stopping.listen()
  done = []
  with pytest.raises(Stopped), stopping.held():
    terminate()
    done.append("step")
    stopping.check()
    done.append("never")
  assert done == ["step"]


def test_a_stop_comes_at_the_latest_when_the_work_is_saved(fresh):
  stopping.listen()
  saved = []
  with pytest.raises(Stopped), stopping.held():
    terminate()
    saved.append("state")
  assert saved == ["state"]
  terminate()  # A second one changes nothing.


def test_several_processes_ask_with_a_number_that_rises_by_one(fresh):
  asked = []
  stopping.listen_together(lambda number: bool(asked.append(number)))
  with stopping.held():
    stopping.check()
    stopping.check()
  assert asked == [1, 2, 3]


@pytest.mark.parametrize(
  ("method", "checks", "stops"),
  [
    # In an epoch, in validation, in the next epoch, in the last test.
    ("deepall", (3, 2, 4, 6), ((0, 2), (0, 3), (1, 4), (2, 6))),
    # In validation, in both prepares and in epochs.
    pytest.param(
      "comen", (4, 5, 10, 6, 8),
      ((0, 3), (1, 3), (2, 5), (3, 6), (4, 8)), marks=pytest.mark.slow,
    ),
  ],
)  # fmt: skip
def test_stopped_between_batches_it_ends_with_the_same_result(
  method, checks, stops, tiny_digits_dg, tmp_path, monkeypatch
):
  """Stops starts of a run at a number of checks: one before every batch.

  An epoch has three batches to train on and one to validate on. A stop is
  described by the number of units that are done and the number of steps.
  """
  config = make_tiny_config(tiny_digits_dg)
  config.method, config.batch_size = method, 120
  config.comen.clustering = "kmeans"
  config.epochs = 2 if method == "deepall" else 3
  if method == "deepall":
    config.stage_shares = (0.0, 0.5, 0.5)
  never, often = tmp_path / "never", tmp_path / "often"
  train.train_and_evaluate(config, str(never))
  found = []
  for number in checks:
    with monkeypatch.context() as patch, pytest.raises(Stopped) as caught:
      patch.setattr(stopping, "check", stops_at(number))
      train.train_and_evaluate(config, str(often))
    step = int(caught.value.after.removeprefix(" after step "))
    found.append((len(read_log(often)), step))
  train.train_and_evaluate(config, str(often))
  assert measured(often) == measured(never)
  assert read_log(often) == read_log(never)
  assert not (often / "interrupted").exists()
  assert tuple(found) == stops


def test_sigterm_within_an_epoch_saves_its_steps(tiny_digits_dg, tmp_path):
  def arguments(workdir):
    """Returns arguments for two epochs of 90 steps."""
    return [
      CONFIG, "--config.method=deepall", f"--workdir={workdir}",
      f"--config.data_dir={tiny_digits_dg}",
      "--config.store_size=16", "--config.image_size=16",
      "--config.epochs=2", "--config.stage_shares=(0.0, 0.5, 0.5)",
      "--config.batch_size=4", "--config.eval_batch_size=128",
      "--config.logging.tensorboard=False",
    ]  # fmt: skip

  never, once = tmp_path / "never", tmp_path / "once"
  code, _, err = commands.run(MODULE, *arguments(never))
  assert code == 0, err
  process = commands.Command(MODULE, *arguments(once))
  assert any("parameters" in line for line in process.lines())
  time.sleep(0.2)  # The first step is being traced or compiled.
  begin = time.monotonic()
  process.stop()
  code, _, err = process.wait()
  assert time.monotonic() - begin < 10
  assert code == STOPPED, err
  (step,) = re.findall(r"^stopped by SIGTERM after step (\d+); the same", err)
  assert 0 < int(step) < 90

  code, out, err = commands.run(MODULE, *arguments(once))
  assert code == 0, err
  assert f"resuming after step {step}, within an epoch" in out
  assert measured(once) == measured(never)
  assert read_log(once) == read_log(never)
