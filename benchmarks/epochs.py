"""Whole epochs of mini digits, with input and validation, as a run has them."""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import jax

from benchmarks.alternate import How, Worker, say
from benchmarks.made import ROOT, load_config
from benchmarks.starts import own_caches
from benchmarks.tables import Table
from benchmarks.worker import Contestant
from comen_jax.experiment import build
from comen_jax.files import read_jsonl

_STEPS = 30  # Steps over which the wait for input is measured.


def measure(how: How) -> list[Table]:
  """Measures a run of one epoch per stage, then the wait for input."""
  with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    environment = own_caches(folder / "caches")
    records = _train(folder / "run", environment)
    with Worker("benchmarks.epochs", environment) as worker:
      facts = worker.prepare("input")
  units = [
    {"stage": r["stage"], "unit": r["kind"], "seconds": r["seconds"]}
    for r in records
  ]
  say(f"the host waits {facts['share of a step']:.2%} of a step for input")
  return [
    Table(
      "mini digits, each unit of work (the first of a stage compiles)", units
    ),
    Table("mini digits, wait for the next batch", [facts]),
  ]


def _train(workdir: pathlib.Path, environment: dict[str, str]) -> list[dict]:
  """Trains two epochs per stage; compilation is in the first one only."""
  say("training two epochs per stage on mini digits")
  command = [
    "-m", "comen_jax.main", "--config", "configs/digits.py",
    "--config.epochs=6", "--config.stage_shares=(0.34, 0.33, 0.33)",
    "--workdir", str(workdir),
  ]  # fmt: skip
  subprocess.run(
    [sys.executable, *command],
    cwd=ROOT,
    env=environment,
    stdout=subprocess.DEVNULL,
    check=True,
  )
  return read_jsonl(workdir / "metrics.jsonl")


def prepare(name: str) -> Contestant:
  """Measures the share of a step that the host waits for its next batch.

  Each step is waited for, so that nothing hides the gather of a batch: a run,
  which does not wait, can only have a smaller share.
  """
  experiment = build(load_config("digits"))
  state, step = experiment.init(), experiment.train_steps[0]
  waits, totals = [], []
  feed = experiment.train_batches(0)
  for _ in range(min(_STEPS, experiment.steps_per_epoch)):
    start = time.perf_counter()
    batch = next(feed)
    waits.append(time.perf_counter() - start)
    state, _ = jax.block_until_ready(step(state, batch, experiment.key))
    totals.append(time.perf_counter() - start)
  # The first step compiles.
  shares = [wait / total for wait, total in zip(waits[1:], totals[1:])]
  facts = {
    "ms": 1000 * statistics.median(waits[1:]),
    "ms of a step": 1000 * statistics.median(totals[1:]),
    "share of a step": statistics.median(shares),
  }
  return Contestant(lambda steps: None, facts)
