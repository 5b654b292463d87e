"""Places the state on every device and splits batches by rows."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


class Shardings(NamedTuple):
  """Says on which devices arrays live.

  Attributes:
    mesh: mesh of all devices, with one axis "data".
    replicated: sharding of the state, a full copy on every device.
    rows: sharding of a batch, split along its first axis.
  """

  mesh: Mesh
  replicated: NamedSharding
  rows: NamedSharding


def paced(step: Callable, shardings: Shardings) -> Callable:
  """Has a step wait for its result, where steps that run ahead would deadlock.

  On CPU, each device of a process takes a thread of one pool. If the devices of
  two processes take them for different steps, both wait for ever. A process
  with one device is free of this, and so are GPUs and TPUs.
  """
  mesh = shardings.mesh
  if mesh.devices.flat[0].platform != "cpu" or not mesh.is_multi_process:
    return step
  if len(mesh.local_devices) == 1:
    return step

  @functools.wraps(step)
  def wait(*arguments):
    return jax.block_until_ready(step(*arguments))

  return wait


def make(devices: Sequence[jax.Device] | None = None) -> Shardings:
  """Creates the shardings for `devices`, by default all of them."""
  devices = jax.devices() if devices is None else devices
  mesh = jax.make_mesh(
    (len(devices),), ("data",), axis_types=(AxisType.Auto,), devices=devices
  )
  return Shardings(
    mesh, NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
  )


def put(tree: Any, place: NamedSharding) -> Any:
  """Copies the arrays of `tree` to the devices of `place`, of all processes.

  Devices of a slice that is only described, to compile for it, hold nothing:
  then the result has shapes in place of arrays.
  """
  device = place.mesh.devices.flat[0]
  if device.client.runtime_type != "compile_only_runtime":
    # Unlike device_put, this needs no message between the processes.
    return jax.jit(lambda: tree, out_shardings=place)()
  shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
  return jax.tree.map(shape, tree)
