"""Two processes see the batches that one sees."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np

from comen_jax import sharding
from comen_jax.data import batches
from comen_jax.data.dataset import Dataset

ROOT = pathlib.Path(__file__).parents[2]
N, BATCH, SEED = 50, 16, 3
EPOCHS = (0, 1, 2)

# What each of the two does; the last epoch is asked for first, as by a run
# that resumes there.
CODE = """
import json, sys
sys.path.insert(0, "tests")
import jax
port, number = sys.argv[1:]
jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(number))
from jax.experimental import multihost_utils
from data import test_two_processes as test
assert jax.process_count() == 2
assert jax.device_count() == 4
gather = lambda x: multihost_utils.process_allgather(x, tiled=True).tolist()
found = {}
for epoch in reversed(test.EPOCHS):
  found[epoch] = test.epoch_of(epoch, gather)
found["eval"] = test.evaluation(gather)
if number == "0":
  print(json.dumps(found))
"""


def dataset():
  rows = np.arange(N)
  return Dataset(
    name="tiny",
    images=np.tile(rows.astype(np.uint8)[:, None, None, None], (1, 2, 2, 3)),
    labels=(rows % 10).astype(np.int32),
    domains=np.zeros(N, np.int32),
    splits=np.zeros(N, np.uint8),
    class_names=tuple("0123456789"),
    domain_names=("only",),
    manifest="",
    default_target="only",
  )


def described(made, gather):
  """Rows, classes, a pixel and the mask of each whole batch."""
  return [
    [gather(x) for x in (b.row, b.label, b.image[:, 0, 0, 0], b.mask)]
    for b in made
  ]


def epoch_of(epoch, gather):
  made = batches.train_batches(
    dataset(),
    np.flatnonzero(np.arange(N) % 5),
    batch_size=BATCH,
    seed=SEED,
    epoch=epoch,
    sharding=sharding.make().rows,
  )
  return described(made, gather)


def evaluation(gather):
  made = batches.eval_batches(
    dataset(),
    np.arange(3, 40),
    batch_size=BATCH,
    sharding=sharding.make().rows,
  )
  return described(made, gather)


def test_one_and_two_processes_and_a_resumed_one_see_the_same_batches():
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
  flags = "--xla_force_host_platform_device_count=2"
  environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
  both = [
    subprocess.Popen(
      [sys.executable, "-c", CODE, str(port), str(number)],
      cwd=ROOT,
      env=environment,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    for number in (0, 1)
  ]
  try:
    ends = [process.communicate(timeout=120) for process in both]
  finally:
    for process in both:
      process.kill()
  for process, (_, err) in zip(both, ends):
    assert process.returncode == 0, err
  found = json.loads(ends[0][0].splitlines()[-1])

  here = lambda x: np.asarray(x).tolist()
  for epoch in EPOCHS:
    assert found[str(epoch)] == epoch_of(epoch, here)
    assert len(found[str(epoch)]) == 2  # Of 40 rows, batches of 16.
  assert found["eval"] == evaluation(here)
  assert found["0"] != found["1"]
