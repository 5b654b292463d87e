"""The command line as a user types it, in processes of its own."""

import itertools
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time

import commands
import pytest
from conftest import ROOT

from comen_jax.errors import Stopped

MODULE = "comen_jax.main"
CONFIG = f"--config={ROOT / 'configs' / 'digits.py'}"
MOMENTS = (
  "warmup epoch 1/2",
  "preparing discover",
  "discover epoch 1/2",
  "preparing encode",
  "encode epoch 1/2",
  "encode epoch 2/2",
)


def run_for_real(arguments):
  """Starts Python itself; returns its exit code, output and error output."""
  done = subprocess.run(
    [sys.executable, "-m", MODULE, *arguments],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    text=True, capture_output=True, timeout=300,
  )  # fmt: skip
  return done.returncode, done.stdout, done.stderr


def tiny(data_dir, workdir, epochs):
  """Returns arguments for epochs of three steps; of two, none is warm-up."""
  shares = (0.0, 0.5, 0.5) if epochs == 2 else (0.34, 0.33, 0.33)
  return [
    CONFIG,
    f"--config.data_dir={data_dir}",
    f"--workdir={workdir}",
    "--config.store_size=16",
    "--config.image_size=16",
    f"--config.epochs={epochs}",
    f"--config.stage_shares={shares}",
    "--config.batch_size=120",
    "--config.eval_batch_size=128",
    "--config.comen.pretrain_steps=50",
    "--config.comen.clustering=kmeans",
    "--config.logging.tensorboard=False",
  ]


def read_log(workdir):
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  return [{**json.loads(line), "seconds": 0} for line in lines]


def stops_at(number: int):
  """A `stopping.check` that stops the run at its call of this number."""
  left = iter(range(number - 1))

  def check():
    if next(left, None) is None:
      raise Stopped

  return check


def measured(workdir):
  """The bytes of `measured` as they stand in result.json."""
  text = (workdir / "result.json").read_text()
  return text[: text.index('"provenance"')]


@pytest.mark.parametrize(
  ("epochs", "moments"),
  [
    (2, ("discover epoch 1/1", "preparing encode")),
    pytest.param(6, MOMENTS, marks=pytest.mark.slow),
  ],
)
def test_killed_anywhere_it_ends_with_the_same_result(
  epochs, moments, tiny_digits_dg, tmp_path
):
  """Kills runs for real; test_train stops one in each stage and prepare."""
  never, often = tmp_path / "never", tmp_path / "often"
  code, out, err = commands.run(MODULE, *tiny(tiny_digits_dg, never, epochs))
  assert code == 0, err
  assert "target, last epoch" in out and "oracle" not in out

  # Each is a line of the output. The kill comes just after it, while the
  # checkpoint of an epoch is being written or a prepare is at work.
  for moment in moments:
    process = commands.Command(MODULE, *tiny(tiny_digits_dg, often, epochs))
    for line in process.lines():
      if line.startswith(moment):
        time.sleep(0.02)
        process.kill()
        break
    assert process.wait()[0] == -signal.SIGKILL, moment
    assert not (often / "result.json").exists()
  code, out, err = run_for_real(tiny(tiny_digits_dg, often, epochs))
  assert code == 0, err
  assert "resuming after" in out
  assert measured(often) == measured(never)
  assert read_log(often) == read_log(never)

  code, out, _ = commands.run(MODULE, *tiny(tiny_digits_dg, often, epochs))
  assert code == 0
  assert "is finished" in out
  assert_its_commands_work(out)

  code, out, err = commands.run(
    MODULE, *tiny(tiny_digits_dg, often, epochs), "--config.seed=1"
  )
  assert_one_line(code, err, "seed was 0, now 1")
  assert measured(often) == measured(never)


def assert_its_commands_work(out):
  """Runs the last two lines, as they are printed, on the run's own images."""
  page, predict = out.splitlines()[-2:]
  assert page.startswith("page     ") and predict.startswith("predict  ")
  python, dash_m, module, *arguments = shlex.split(predict)[1:]
  assert (os.path.abspath(python), dash_m) == (sys.executable, "-m")
  code, out, err = commands.run(module, *arguments)
  assert (code, err) == (0, "")
  assert len(out.splitlines()) == 11  # A header, and an image of each class.
  _, _, module, folder = shlex.split(page)[1:]
  code, out, err = commands.run(module, folder)
  assert (code, err) == (0, "") and "index.html" in out


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_result(
  tiny_digits_dg, tmp_path
):
  """Kills 20 starts, from the first import to the last figure."""
  begin = time.monotonic()
  code, _, err = commands.run(MODULE, *tiny(tiny_digits_dg, tmp_path / "0", 6))
  assert code == 0, err
  seconds = time.monotonic() - begin
  rng, kills, units = random.Random(12), 0, set()
  for number in itertools.count(1):
    path = tmp_path / str(number)
    code = None
    while code != 0:
      process = commands.Command(MODULE, *tiny(tiny_digits_dg, path, 6))
      if kills < 20:
        time.sleep(rng.uniform(0.1, 1) * seconds)
        process.kill()
      code, _, err = process.wait()
      assert code in (0, -signal.SIGKILL), err
      kills += code != 0
      units.add(len(read_log(path)) if (path / "metrics.jsonl").exists() else 0)
    assert measured(path) == measured(tmp_path / "0")
    assert read_log(path) == read_log(tmp_path / "0")
    if kills == 20:
      break
  assert len(units) > 4, "the moments were not spread over the run"


def assert_one_line(code, err, text):
  assert code not in (0, 1)
  assert text in err
  assert err.startswith("error: ")
  assert err.count("\n") == 1, err


@pytest.mark.parametrize(
  ("argument", "text"),
  [
    ("--config.targt=svhn", "did you mean config.target?"),
    ("--config.seed=one", "seed=one: give a whole number"),
    ("--config=configs/none.py", "configs/none.py"),
    ("--config.method=fact_bn", "--config.method=fact --config.norm=batch"),
    ("--config.data_dir=no_such_folder", "no_such_folder"),
    ("svhn", "svhn is not a flag"),
  ],
)
def test_bad_input_is_one_line(argument, text, tmp_path):
  workdir = tmp_path / "run"
  arguments = [CONFIG, argument, f"--workdir={workdir}"]
  code, _, err = commands.run(MODULE, *arguments)
  assert_one_line(code, err, text)
  assert not workdir.exists()
