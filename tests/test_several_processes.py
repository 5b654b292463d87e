"""Real processes that train one run together, beside one process alone."""

import json
import re
import time

import commands
import numpy as np
import pytest
from test_main import MODULE, read_log, tiny

from comen_jax.errors import STOPPED


def arguments(data_dir, workdir, epochs=3):
  """Returns arguments of a run that is the same to 1e-4 on other devices.

  At the full rate, rounding errors of a ReLU near 0 grow past that.
  """
  return [*tiny(data_dir, workdir, epochs), "--config.learning_rate=0.01"]


def ends(processes, seconds=900):
  """Waits for all -> their exit codes, outputs and error outputs."""
  return [process.wait(seconds) for process in processes]


def alone(data_dir, workdir, devices=2, epochs=3):
  process = commands.Command(
    MODULE,
    *arguments(data_dir, workdir, epochs),
    environ=commands.with_devices(devices),
  )
  code, _, err = process.wait()
  assert code == 0, err


def assert_close(one, other):
  """Compares records, results and pseudo labels of two runs."""
  for mine, theirs in zip(read_log(one), read_log(other), strict=True):
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
      if isinstance(value, float):
        # An entropy near 0 is a sum of rounding errors.
        assert theirs[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name
      else:
        assert theirs[name] == value, name
  results = [
    json.loads((path / "result.json").read_text())["measured"]
    for path in (one, other)
  ]
  assert results[0]["selected_epoch"] == results[1]["selected_epoch"]
  with np.load(one / "analysis.npz") as a, np.load(other / "analysis.npz") as b:
    np.testing.assert_array_equal(a["domains"], b["domains"])
    assert (a["domains"] >= 0).sum() == 480  # Every source image has one.


def test_two_processes_train_what_one_does(tiny_digits_dg, tmp_path):
  """Discover and encode; slow tests below have warm-up too."""
  one, two = tmp_path / "one", tmp_path / "two"
  alone(tiny_digits_dg, one, epochs=2)
  both = commands.together(MODULE, *arguments(tiny_digits_dg, two, epochs=2))
  (code, out, err), (other_code, other_out, other_err) = ends(both)
  assert (code, other_code) == (0, 0), err + other_err
  assert "2 x cpu (cpu), 2 process(es)" in out
  assert "target, last epoch" in out
  # Gloo prints a line of its own.
  assert all(line.startswith("[Gloo]") for line in other_out.splitlines())
  assert_close(one, two)
  origin = json.loads((two / "result.json").read_text())["provenance"]
  assert (origin["devices"], origin["processes"]) == (2, 2)


def test_an_error_of_two_processes_is_said_once(tiny_digits_dg, tmp_path):
  both = commands.together(
    MODULE,
    *arguments(tiny_digits_dg, tmp_path / "run"),
    "--config.batch_size=121",
  )
  (code, _, err), (other_code, _, other_err) = ends(both)
  assert (code, other_code) == (2, 2)
  assert err.startswith("error: batch_size=121 does not divide over 2 devices")
  assert err.count("\n") == 1 and other_err == ""
  assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_devices_of_two_processes_do_not_deadlock(tiny_digits_dg, tmp_path):
  one, two = tmp_path / "one", tmp_path / "two"
  alone(tiny_digits_dg, one, devices=4)
  both = commands.together(MODULE, *arguments(tiny_digits_dg, two), devices=2)
  (code, out, err), (other_code, *_) = ends(both)
  assert (code, other_code) == (0, 0), err
  assert "4 x cpu (cpu), 2 process(es)" in out
  assert_close(one, two)


def started(processes, moment):
  """Waits for a line of process 0 that has `moment` in it."""
  assert any(moment in line for line in processes[0].lines()), moment


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_sigterm_to_one_of_two_saves_and_ends_both(
  number, tiny_digits_dg, tmp_path
):
  never, often = tmp_path / "never", tmp_path / "often"
  small = "--config.batch_size=8"  # 45 steps in an epoch.
  both = commands.together(MODULE, *arguments(tiny_digits_dg, never), small)
  assert [code for code, *_ in ends(both)] == [0, 0]
  steps = []
  for moment in ("parameters", "preparing discover", "discover epoch 1/1"):
    both = commands.together(MODULE, *arguments(tiny_digits_dg, often), small)
    started(both, moment)
    time.sleep(0.3)
    begin = time.monotonic()
    both[number].stop()
    (code, _, err), (other_code, _, other_err) = ends(both)
    assert time.monotonic() - begin < 30
    assert (code, other_code) == (STOPPED, STOPPED), err + other_err
    (step,) = re.findall(r"^stopped by SIGTERM after step (\d+)", err, re.M)
    assert "stopped by" not in other_err
    steps.append(int(step))
  assert any(step % 45 for step in steps), steps
  both = commands.together(MODULE, *arguments(tiny_digits_dg, often), small)
  codes = ends(both)
  assert [code for code, *_ in codes] == [0, 0], codes
  assert_close(never, often)
  assert read_log(never) == read_log(often)


@pytest.mark.slow
@pytest.mark.parametrize("dead", [0, 1])
@pytest.mark.parametrize("moment", ["warmup epoch 1/1", "preparing encode"])
def test_a_dead_process_ends_the_other(dead, moment, tiny_digits_dg, tmp_path):
  both = commands.together(MODULE, *arguments(tiny_digits_dg, tmp_path / "run"))
  started(both, moment)
  both[dead].kill()
  begin = time.monotonic()
  code, _, err = both[1 - dead].wait()
  assert time.monotonic() - begin < 60
  assert code not in (0, STOPPED)
  last = [line for line in err.splitlines() if line.startswith("error: ")]
  assert len(last) == 1, err
  assert "another process of this run has ended" in last[0]
  assert "Traceback" not in err
  both[dead].wait()
  again = commands.together(
    MODULE, *arguments(tiny_digits_dg, tmp_path / "run")
  )
  assert [code for code, *_ in ends(again)] == [0, 0]


@pytest.mark.slow
def test_two_processes_go_on_where_one_stopped_and_back(
  tiny_digits_dg, tmp_path
):
  """From 2 processes to 1, back to 2 and to 1 again, mostly within epochs.

  An epoch has 15 steps, and the rate is low: with every step, rounding errors
  of other devices grow.
  """
  never, often = tmp_path / "never", tmp_path / "often"
  slow = ["--config.batch_size=24", "--config.learning_rate=0.001"]
  code, _, err = commands.run(MODULE, *arguments(tiny_digits_dg, never), *slow)
  assert code == 0, err
  given = [*arguments(tiny_digits_dg, often), *slow]
  for count, moment in (
    (2, "parameters"),
    (1, "preparing"),
    (2, "discover epoch"),
    (1, ""),
  ):
    if count == 2:
      processes = commands.together(MODULE, *given)
    else:
      processes = [commands.Command(MODULE, *given)]
    if moment:
      started(processes, moment)
      time.sleep(0.5)
      processes[0].stop()
    want = STOPPED if moment else 0
    found = ends(processes)
    assert [code for code, *_ in found] == [want] * count, found
  assert_close(never, often)


@pytest.mark.slow
def test_a_sweep_of_two_processes_trains_its_runs_in_step(
  tiny_digits_dg, tmp_path
):
  given = arguments(tiny_digits_dg, tmp_path / "sweep")
  flags = ["--targets=svhn", "--methods=deepall,comen", "--seeds=0"]
  both = commands.together("comen_jax.sweep", *given, *flags, "--jobs=2")
  (code, _, err), (other_code, _, other_err) = ends(both)
  assert (code, other_code, other_err) == (2, 2, "")
  assert err.startswith("error: --jobs=2: several processes train one run")
  assert err.count("\n") == 1

  both = commands.together("comen_jax.sweep", *given, *flags)
  started(both, "warmup epoch 1/1")
  both[1].stop()
  found = ends(both)
  assert [code for code, *_ in found] == [STOPPED, STOPPED], found
  assert "the same command resumes the sweep" in found[0][2]
  found = ends(commands.together("comen_jax.sweep", *given, *flags))
  assert [code for code, *_ in found] == [0, 0], found
  assert "2 of 2 runs are done" in found[0][1]
  lines = (tmp_path / "sweep" / "results.0-of-1.jsonl").read_text().splitlines()
  assert len(lines) == 2
