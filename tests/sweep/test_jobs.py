"""Runs that are trained at a time; a small script stands in for the worker.

The last two tests start real ones.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import ROOT, load_config

from comen_jax.errors import STOPPED, UserError
from comen_jax.sweep import grid, jobs, shares
from comen_jax.sweep.ledger import Ledger
from comen_jax.sweep.shares import Share
from comen_jax.sweep.tally import Tally

# What a run does is in the name of its folder: "<what>-<number>".
WORKER = """
import json, os, pathlib, sys, time
for line in sys.stdin:
  folder = pathlib.Path(json.loads(line)["folder"])
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "pid").write_text(str(os.getpid()))
  what = folder.name.partition("-")[0]
  if what == "killed":
    os.kill(os.getpid(), 9)
  if what == "broken":
    sys.exit(3)
  if what == "endless":
    time.sleep(600)
  if what == "slow":
    time.sleep(1)
  outcome = ["done", ""]
  if what == "bad":
    outcome = ["failed", "the loss is nan"]
  elif what == "busy":
    outcome = ["busy", ""]
  else:
    result = {"measured": {"target_accuracy": 0.5}}
    (folder / "result.json").write_text(json.dumps(result))
  print(json.dumps({"news": ["epoch", "train epoch 1/1", 1.0]}), flush=True)
  print(json.dumps({"news": ["warning", "so-so", 0.0]}), flush=True)
  print(json.dumps({"outcome": outcome}), flush=True)
"""


@pytest.fixture
def started(monkeypatch) -> list[subprocess.Popen]:
  """Puts the script in the worker's place -> the processes that it became."""
  found = []

  def start(share):
    process = subprocess.Popen(
      [sys.executable, "-c", WORKER],
      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    found.append(process)
    return process

  monkeypatch.setattr(jobs, "_start", start)
  return found


def do(folder, names, count=2):
  config = load_config("digits")
  runs = [grid.Run(f"{n}-{k}", "comen", config) for k, n in enumerate(names)]
  tally = Tally(folder, runs, Ledger(folder, 0, 1))
  jobs.train(tally, [Share()] * count)
  return tally.summary()


def recorded(folder) -> list[str]:
  lines = (folder / "results.0-of-1.jsonl").read_text().splitlines()
  return sorted(json.loads(line)["run"] for line in lines)


def test_workers_share_the_runs_and_end(started, tmp_path, capsys):
  names = ["slow", *["good"] * 5]
  assert do(tmp_path, names) == {}
  assert recorded(tmp_path) == sorted(f"{n}-{k}" for k, n in enumerate(names))
  out = capsys.readouterr().out
  assert "6 runs, 0 done, 6 to do" in out
  assert "good-1: train epoch 1/1\n" in out
  assert "WARNING: good-1: so-so\n" in out
  assert "good-1: done, target 50.00 %\n" in out
  # While one trained the slow run, the other did all the rest.
  pid = lambda name: (tmp_path / "runs" / name / "pid").read_text()
  assert len({pid(f"good-{k}") for k in range(1, 6)}) == 1
  assert len(started) == 2
  assert all(process.returncode is not None for process in started)


def test_a_dead_worker_fails_its_run_and_is_replaced(started, tmp_path, capsys):
  names = ["good", "killed", "good", "broken", "good"]
  failed = do(tmp_path, names, count=1)
  assert list(failed) == ["killed-1", "broken-3"]
  assert "SIGKILL" in failed["killed-1"] and "log.txt" in failed["killed-1"]
  assert "exit code 3" in failed["broken-3"]
  assert recorded(tmp_path) == ["good-0", "good-2", "good-4"]
  assert len(started) == 3
  assert "2 of 5 runs failed; the same command" in capsys.readouterr().out


def test_failed_and_busy_runs_do_not_stop_the_others(started, tmp_path, capsys):
  failed = do(tmp_path, ["bad", "busy", "good"])
  assert failed == {"bad-0": "the loss is nan"}
  assert recorded(tmp_path) == ["good-2"]
  out = capsys.readouterr().out
  assert "busy-1: another job trains this run: skipped" in out
  assert "other jobs train them: busy-1" in out


@pytest.mark.parametrize(
  ("number", "error"),
  [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)],
)
def test_a_signal_stops_all_workers(number, error, started, tmp_path):
  stop = threading.Timer(0.5, os.kill, (os.getpid(), number))
  stop.start()
  with pytest.raises(error):
    do(tmp_path, ["good", "endless", "endless", "good"])
  assert recorded(tmp_path) == ["good-0"]
  assert all(process.returncode is not None for process in started)


def test_an_error_of_a_job_ends_the_sweep(tmp_path, monkeypatch):
  def fail(share):
    raise OSError("no memory")

  monkeypatch.setattr(jobs, "_start", fail)
  with pytest.raises(OSError, match="no memory"):
    do(tmp_path, ["good"] * 3)


def test_cores_are_shared_out_evenly(monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5, 12)))
  monkeypatch.setattr(shares, "_physical", lambda core: core)
  monkeypatch.setenv("JAX_PLATFORMS", "cpu")
  found = shares.make(3)
  assert [share.cores for share in found] == [(5, 6), (7, 8), (9, 10)]
  with pytest.raises(UserError, match=r"--jobs=8: only 7 CPU cores .*=7"):
    shares.make(8)


def test_gpus_are_shared_out_as_far_as_they_are_visible(monkeypatch):
  monkeypatch.setattr(shares, "_devices", lambda: ("gpu", 4))
  monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
  assert [share.devices for share in shares.make(2)] == ["0,1", "2,3"]
  monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7,3,GPU-ab,1")
  found = shares.make(4)
  assert [share.devices for share in found] == ["7", "3", "GPU-ab", "1"]
  assert found[2].environ()["CUDA_VISIBLE_DEVICES"] == "GPU-ab"
  with pytest.raises(UserError, match="--jobs=5: only 4 GPUs"):
    shares.make(5)


def test_a_tpu_has_one_job(monkeypatch):
  monkeypatch.setattr(shares, "_devices", lambda: ("tpu", 8))
  with pytest.raises(UserError, match=r"--jobs=2: a TPU .* --jobs=1"):
    shares.make(2)


def start(folder, data_dir, jobs, epochs=1) -> subprocess.Popen:
  arguments = [
    "--targets=svhn", "--methods=deepall", "--seeds=0,1",
    f"--config.data_dir={data_dir}", f"--workdir={folder}", f"--jobs={jobs}",
    "--config.store_size=16", "--config.image_size=16",
    f"--config.epochs={epochs}", "--config.stage_shares=(0.0, 0.0, 1.0)",
    "--config.batch_size=120", "--config.eval_batch_size=128",
    "--config.logging.tensorboard=False",
  ]  # fmt: skip
  return subprocess.Popen(
    [
      sys.executable, "-m", "comen_jax.sweep",
      "--config", str(ROOT / "configs" / "digits.py"), *arguments,
    ],
    env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
  )  # fmt: skip


def finish(process) -> None:
  out, err = process.communicate(timeout=300)
  assert (process.returncode, err) == (0, "")
  assert "2 of 2 runs are done" in out


def measured(folder) -> dict:
  lines = (folder / "results.0-of-1.jsonl").read_text().splitlines()
  return {r["run"]: r["measured"] for r in map(json.loads, lines)}


needs_cores = pytest.mark.skipif(
  not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
  reason="two jobs need two cores that can be chosen",
)


@needs_cores
def test_two_jobs_give_the_results_of_one(tiny_digits_dg, tmp_path):
  two = tmp_path / "two"
  finish(start(two, tiny_digits_dg, 2))
  # The number of cores changes the order of sums: one job gets as many.
  before, cores = os.sched_getaffinity(0), shares.make(2)[0].cores
  os.sched_setaffinity(0, cores)
  try:
    process = start(tmp_path / "one", tiny_digits_dg, 1)
  finally:
    os.sched_setaffinity(0, before)
  finish(process)
  assert measured(tmp_path / "one") == measured(two)
  run = two / "runs" / "digits_dg-svhn-deepall-seed1"
  assert "train epoch 1/1" in (run / "log.txt").read_text()
  origin = json.loads((run / "result.json").read_text())["provenance"]
  assert origin["command"].startswith("python -m comen_jax.sweep --config")


@pytest.mark.slow
@needs_cores
def test_sigterm_goes_on_to_the_workers_which_save(tiny_digits_dg, tmp_path):
  finish(start(tmp_path / "never", tiny_digits_dg, 2, epochs=3))
  once = tmp_path / "once"
  process = start(once, tiny_digits_dg, 2, epochs=3)
  assert any("epoch 1/3" in line for line in process.stdout)
  begin = time.monotonic()
  process.terminate()
  _, err = process.communicate(timeout=60)
  assert time.monotonic() - begin < 30
  assert process.returncode == STOPPED, err
  assert err == "stopped by SIGTERM; the same command resumes the sweep\n"
  logs = [path.read_text() for path in once.glob("runs/*/log.txt")]
  assert len(logs) == 2
  assert all("stopped by SIGTERM after step" in text for text in logs), logs
  finish(start(once, tiny_digits_dg, 2, epochs=3))
  assert measured(once) == measured(tmp_path / "never")


@pytest.mark.slow
@needs_cores
def test_killed_and_resumed_it_ends_with_the_same_results(
  tiny_digits_dg, tmp_path
):
  finish(start(tmp_path / "never", tiny_digits_dg, 2, epochs=3))
  often = tmp_path / "often"
  process = start(often, tiny_digits_dg, 2, epochs=3)
  assert any("epoch 1/3" in line for line in process.stdout)
  inside = pathlib.Path(f"/proc/{process.pid}/task").glob("*/children")
  workers = " ".join(place.read_text() for place in inside).split()
  assert len(workers) == 2
  process.kill()
  process.communicate(timeout=60)
  end = time.monotonic() + 10
  while any(pathlib.Path(f"/proc/{pid}").exists() for pid in workers):
    assert time.monotonic() < end
    time.sleep(0.05)
  finish(start(often, tiny_digits_dg, 2, epochs=3))
  assert measured(often) == measured(tmp_path / "never")
