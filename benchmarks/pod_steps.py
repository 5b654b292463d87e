"""Training steps compiled for TPU slices that need not be there.

The steps are those of `experiment.build` for a config, with its batch size and
devices replaced. Arguments are shapes only, so nothing is computed.
"""

import collections
import functools
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies

from benchmarks import collectives, made
from benchmarks.collectives import Array, Collective
from comen_jax import sharding
from comen_jax.data.batches import Batch
from comen_jax.experiment import Experiment, build
from comen_jax.methods.comen.prepare import PREDICTOR
from comen_jax.sharding import Shardings
from comen_jax.train_state import TrainState

# Network -> config, number of classes.
NETWORKS = {"digits": ("digits", 10), "resnet18": ("pacs", 7)}
# Number of chips -> shape of the slice.
SLICES = {1: "1x1", 4: "2x2", 16: "4x4", 64: "8x8", 256: "16x16"}
_ROWS = 2**16  # Rows of the data set: enough for the largest batch.


class Case(NamedTuple):
  """A step to compile.

  Attributes:
    network: a key of `NETWORKS`.
    method: name of the method, comen or deepall.
    stage: name of the stage.
    batch: what is fixed: "per_chip" or "global".
    chips: number of chips.
    images: number of images of the whole batch.
  """

  network: str
  method: str
  stage: str
  batch: str
  chips: int
  images: int

  @property
  def name(self) -> str:
    step = self.stage if self.method == "comen" else self.method
    return f"{self.network}/{step}/{self.batch}/{self.chips}"


def measure(case: Case) -> dict[str, Any]:
  """Compiles a step for TPU v5e; returns what the compiler says about it."""
  shardings = sharding.make(_devices(case.chips))
  experiment, state, step = _step(case, shardings)
  lowered = step.lower(state, _batch(case, experiment), experiment.key)
  start = time.monotonic()
  compiled = lowered.compile()
  seconds = time.monotonic() - start
  cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
  # The state is donated: it is both an argument and an output.
  held = memory.argument_size_in_bytes + memory.output_size_in_bytes
  held -= memory.alias_size_in_bytes
  found = collectives.find(compiled.as_text(), case.chips)
  return {
    **case._asdict(),
    "flops": cost["flops"],
    "bytes_accessed": cost["bytes accessed"],
    "memory_bytes": held + memory.temp_size_in_bytes,
    "temporary_bytes": memory.temp_size_in_bytes,
    "collectives": collectives.by_kind(found),
    **_by_role(found, state),
    "needed_bytes": needed_bytes(state),
    "compile_seconds": round(seconds, 1),
  }


def lower_for_gpu(case: Case) -> dict[str, Any]:
  """Lowers a step for CUDA on one device; this is not compiling."""
  one = sharding.make(jax.devices("cpu")[:1])
  experiment, state, step = _step(case, one)
  export = jax.export.export(step, platforms=["cuda"])
  text = export(state, _batch(case, experiment), experiment.key).mlir_module()
  return {"lines": text.count("\n"), "custom_calls": _custom_calls(text)}


def needed_bytes(state: TrainState) -> dict[str, int]:
  """Bytes of what a step has to reduce, each array once, float32.

  Parameters of the backbone, statistics of its norms (a step reduces as many
  moments as it keeps) and prototypes. ProtoGR is left out: every chip has all
  prototypes, so that its gradient is the same everywhere.
  """
  parts = {
    "parameters": state.params["backbone"],
    "statistics": _statistics(state),
    "prototypes": getattr(state.memory, "prototypes", ()),
  }
  return {
    name: sum(4 * leaf.size for leaf in jax.tree.leaves(tree))
    for name, tree in parts.items()
  }


def role(array: Array, state: TrainState) -> str:
  """What an array of a collective is, by its number of elements.

  Returns:
    "weights": gradient of a kernel, or of the last bias; "norms": moments of a
    norm, gradients of its scale and bias, and biases of the same size;
    "prototypes": sums and counts of cells; "scalars": a loss, a metric, images
    of a domain; "other": what has no place in a data-parallel step.
  """
  width = domains = 1
  if state.memory:
    domains, classes, width = state.memory.prototypes.values.shape
    if array.size in (domains * classes * width, domains * classes):
      return "prototypes"
  if array.size in (1, domains):
    return "scalars"
  moments = {leaf.size for leaf in _statistics(state)}
  if array.size in moments | {size // domains for size in moments}:
    return "norms"
  weights = {leaf.size for leaf in jax.tree.leaves(state.params["backbone"])}
  return "weights" if array.size in weights else "other"


def _statistics(state: TrainState) -> list[Any]:
  """Running means and variances of the norms."""
  paths = jax.tree_util.tree_leaves_with_path(state.batch_stats)
  # F_d has a mean and a std too; they are set once and never reduced.
  return [
    leaf
    for keys, leaf in paths
    if keys[-1].key in ("mean", "var") and keys[0].key != PREDICTOR
  ]


def _by_role(found: Iterable[Collective], state: TrainState) -> dict[str, Any]:
  """Bytes by role, and the name of each collective that is a defect."""
  totals: dict[str, int] = collections.defaultdict(int)
  defects = []
  for c in found:
    roles = {array: role(array, state) for array in c.arrays}
    for array in c.arrays:
      totals[roles[array]] += array.bytes
    if c.kind != "all-reduce" or "other" in roles.values():
      odd = [
        f"{a.dtype}{list(a.shape)}" for a, r in roles.items() if r == "other"
      ]
      defects.append(f"{c.kind} of {', '.join(odd)} from {c.op_name}")
  return {"roles": dict(totals), "defects": defects}


def _step(
  case: Case, shardings: Shardings
) -> tuple[Experiment, TrainState, Any]:
  """Builds the experiment; returns it, its state as shapes, and the step."""
  name, num_classes = NETWORKS[case.network]
  config = made.load_config(name)
  config.method, config.pretrained = case.method, ""
  config.batch_size = case.images
  shape = (_ROWS, config.store_size, config.store_size, 3)
  pixels = np.broadcast_to(np.uint8(0), shape)  # Takes no memory.
  dataset = made.dataset(pixels, num_classes)
  experiment = build(config, dataset, shardings)
  stages = [stage.name for stage in experiment.method.stages]
  step = experiment.train_steps[stages.index(case.stage)]
  return experiment, jax.eval_shape(experiment.init), step


def _batch(case: Case, experiment: Experiment) -> Batch:
  rows = lambda dtype, *shape: jax.ShapeDtypeStruct(
    (case.images, *shape), dtype
  )
  return Batch(
    image=rows(jnp.uint8, *experiment.dataset.images.shape[1:]),
    label=rows(jnp.int32),
    row=rows(jnp.int32),
    mask=rows(jnp.float32),
  )


@functools.cache
def _devices(chips: int) -> list[jax.Device]:
  """Devices of a slice that is only described."""
  # A host of v5e has four chips; the smallest slice has a part of one.
  options = {"chips_per_host_bounds": [1, 1, 1]} if chips == 1 else {}
  topology = topologies.get_topology_desc(
    platform="tpu", topology_name=f"v5e:{SLICES[chips]}", **options
  )
  return topology.devices


def _custom_calls(text: str) -> list[str]:
  """Names of the functions that a lowered step takes from a GPU library."""
  names = (part.split("(")[0] for part in text.split("custom_call @")[1:])
  return sorted(set(names))
