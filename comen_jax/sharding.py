"""Where arrays live: state on every device, batches split along their rows."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


class Shardings(NamedTuple):
  mesh: Mesh
  replicated: NamedSharding
  rows: NamedSharding


def make(devices: Sequence[jax.Device] | None = None) -> Shardings:
  """Shardings over a `("data",)` mesh of `devices`, default all of them."""
  devices = jax.devices() if devices is None else devices
  mesh = jax.make_mesh(
    (len(devices),), ("data",), axis_types=(AxisType.Auto,), devices=devices
  )
  return Shardings(
    mesh, NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
  )
