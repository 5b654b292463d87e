"""Two processes use the same checkpoint, also when the newest is damaged."""

import json
import os
import socket

from data.helpers import start_python

# Each process says what it restored and which errors it got.
CODE = """
import collections, json, pathlib, sys
import jax
port, number, folder = sys.argv[1:]
folder = pathlib.Path(folder)
jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(number))
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from comen_jax import sharding
from comen_jax.errors import UserError
from comen_jax.run import checkpointing
from comen_jax.run.checkpointing import Checkpoints

rows = sharding.make().rows
assert len(rows.mesh.devices) == 2
make = lambda value: jax.make_array_from_callback(
  (4,), rows, lambda index: np.full(4, value, np.float32)[index])

def damage(units):
  multihost_utils.sync_global_devices("before")
  if number == "0":
    place = next((folder / units).glob("default/**/d/*"))
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 4
    place.write_bytes(data)
  multihost_utils.sync_global_devices("after")

def resume():
  checkpoints = Checkpoints(folder)
  try:
    units, state = checkpoints.resume({"w": make(0.0)})
    return units, float(state["w"].addressable_data(0)[0])
  finally:
    checkpoints.close()

def error_of(function, *arguments):
  try:
    function(*arguments)
  except UserError as e:
    return str(e)

def save(checkpoints, units):
  checkpoints.save(units, {"w": make(units)}, 1.0)

found = {}
checkpoints = Checkpoints(folder)
for units in (1, 2, 3):
  save(checkpoints, units)
checkpoints.close()
found["whole"] = resume()
damage("3")
found["damaged"] = resume()

checkpoints = Checkpoints(folder)
if number == "0":  # The other process sees enough room.
  usage = collections.namedtuple("usage", "free")(0)
  checkpointing.shutil.disk_usage = lambda _: usage
found["full"] = error_of(save, checkpoints, 3)
checkpoints.close()

# One that only this process cannot read is used by neither.
restore = Checkpoints._restore
def unreadable(self, units, like):
  state = restore(self, units, like)
  if (number, units) == ("1", 2):
    raise OSError("a bad cable")
  return state
checkpointing.Checkpoints._restore = unreadable
multihost_utils.sync_global_devices("removed")
found["alone"] = error_of(resume)
print(json.dumps(found))
"""


def test_all_processes_use_the_one_that_process_0_verified(tmp_path):
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
  both = [
    start_python(
      ["-c", CODE, str(port), str(number), str(tmp_path)],
      JAX_PLATFORMS="cpu",
      JAX_NUM_CPU_DEVICES="1",
      XLA_FLAGS=os.environ["XLA_FLAGS"],
    )
    for number in (0, 1)
  ]
  try:
    ends = [process.communicate(timeout=300) for process in both]
  finally:
    for process in both:
      process.kill()
  for process, (_, err) in zip(both, ends):
    assert process.returncode == 0, err
  found = [json.loads(out.splitlines()[-1]) for out, _ in ends]
  for one in found:
    assert one["whole"] == [3, 3.0]
    assert one["damaged"] == [2, 2.0]
    assert one["alone"]
  assert f"{tmp_path / '3'} is damaged" in ends[0][0]
  assert "is damaged" not in ends[1][0]
  for one in found:
    assert "is full (0.0 MiB free" in one["full"]
  assert f"no checkpoint in {tmp_path} is good (2: another" in found[0]["alone"]
