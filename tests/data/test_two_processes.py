"""Two processes see the same batches as one process.

Their devices alternate in the mesh, as they may on a TPU slice: the rows of a
process are not next to each other.
"""

import json
import os
import socket

import jax
import numpy as np

from comen_jax import sharding
from comen_jax.data import batches
from data.helpers import start_python, tiny_dataset

N, BATCH, SEED = 50, 16, 3
EPOCHS = (0, 1, 2)

# The code of each process. It asks for the last epoch first, as a run does that
# resumes there.
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


def rows_sharding():
  """The sharding of a mesh in which the devices of processes alternate."""
  local = [
    jax.local_devices(process_index=n) for n in range(jax.process_count())
  ]
  return sharding.make([d for some in zip(*local) for d in some]).rows


def dataset():
  rows = np.arange(N)
  return tiny_dataset(
    images=np.tile(rows.astype(np.uint8)[:, None, None, None], (1, 2, 2, 3)),
    labels=rows % 10,
    domains=np.zeros(N),
    splits=np.zeros(N),
  )


def described(made, gather):
  """Lists rows, classes, one pixel and the mask of each global batch."""
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
    sharding=rows_sharding(),
  )
  return described(made, gather)


def evaluation(gather):
  made = batches.eval_batches(
    dataset(),
    np.arange(3, 40),
    batch_size=BATCH,
    sharding=rows_sharding(),
  )
  return described(made, gather)


def test_one_and_two_processes_and_a_resumed_one_see_the_same_batches():
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
  flags = os.environ["XLA_FLAGS"]
  flags += " --xla_force_host_platform_device_count=2"
  both = [
    start_python(
      ["-c", CODE, str(port), str(number)],
      JAX_PLATFORMS="cpu",
      XLA_FLAGS=flags,
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
    assert len(found[str(epoch)]) == 2  # 40 rows in batches of 16.
  assert found["eval"] == evaluation(here)
  assert found["0"] != found["1"]
