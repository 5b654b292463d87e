"""The command line as a user types it, in processes of its own."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[1]
CONFIG = str(ROOT / "configs" / "digits.py")


@pytest.fixture
def environment():
  return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def start(arguments, environment, **how):
  command = [sys.executable, "-m", "comen_jax.main", "--config", CONFIG]
  return subprocess.Popen(
    [*command, *arguments],
    env=environment,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    **how,
  )


def run(arguments, environment):
  process = start(arguments, environment)
  out, err = process.communicate(timeout=300)
  return process.returncode, out, err


def tiny(data_dir, workdir):
  """Two epochs per stage, eight steps each."""
  return [
    f"--config.data_dir={data_dir}",
    f"--workdir={workdir}",
    "--config.epochs=6",
    "--config.stage_shares=(0.34, 0.33, 0.33)",
    "--config.batch_size=40",
    "--config.eval_batch_size=128",
    "--config.comen.pretrain_steps=50",
    "--config.comen.clustering=kmeans",
  ]


def read_log(workdir):
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  return [{**json.loads(line), "seconds": 0} for line in lines]


def measured(workdir):
  """The bytes of `measured` as they stand in result.json."""
  text = (workdir / "result.json").read_text()
  return text[: text.index('"provenance"')]


def test_killed_anywhere_it_ends_with_the_same_result(
  tiny_digits_dg, environment, tmp_path
):
  never, often = tmp_path / "never", tmp_path / "often"
  code, out, err = run(tiny(tiny_digits_dg, never), environment)
  assert code == 0, err
  assert "target, oracle" in out

  # Each is a line of the output; the kill falls just behind it, so that it
  # hits an epoch of every stage and both prepares.
  for moment in (
    "warmup epoch 1/2",
    "preparing discover",
    "discover epoch 1/2",
    "preparing encode",
    "encode epoch 1/2",
    "encode epoch 2/2",
  ):
    process = start(tiny(tiny_digits_dg, often), environment)
    for line in process.stdout:
      if line.startswith(moment):
        time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        break
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, moment
    assert not (often / "result.json").exists()
  code, out, err = run(tiny(tiny_digits_dg, often), environment)
  assert code == 0, err
  assert "resuming after" in out
  assert measured(often) == measured(never)
  assert read_log(often) == read_log(never)

  code, out, _ = run(tiny(tiny_digits_dg, often), environment)
  assert code == 0
  assert "is finished" in out

  code, out, err = run(
    [*tiny(tiny_digits_dg, often), "--config.seed=1"], environment
  )
  assert_one_line(code, err, "seed was 0, now 1")
  assert measured(often) == measured(never)


def assert_one_line(code, err, text):
  assert code not in (0, 1)
  assert text in err
  assert err.startswith("error: ")
  assert err.count("\n") == 1, err


@pytest.mark.parametrize(
  ("argument", "text"),
  [
    ("--config.targt=svhn", 'Did you mean "target"'),
    ("--config.seed=one", "--config.seed=one"),
    ("--config=configs/none.py", "configs/none.py"),
    ("--config.data_dir=no_such_folder", "no_such_folder"),
    ("svhn", "svhn is not a flag"),
  ],
)
def test_bad_input_is_one_line(argument, text, environment, tmp_path):
  workdir = tmp_path / "run"
  code, _, err = run([argument, f"--workdir={workdir}"], environment)
  assert_one_line(code, err, text)
  assert not workdir.exists()
