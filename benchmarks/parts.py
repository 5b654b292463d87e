"""Where the time of a step goes: the parts of the digits CNN, ours and torch's.

Each part is timed alone, forward and with its gradients. So the sum of all
parts is more than a step, in which XLA joins some of them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.alternate import How, Worker, alternate
from benchmarks.jax_steps import repeat
from benchmarks.tables import Table
from benchmarks.worker import Contestant
from comen_jax.nn.batch_norm import BatchNorm
from comen_jax.nn.conv import Conv
from comen_jax.nn.digits_cnn import max_pool
from comen_jax.process.allocator import keep_memory

BATCH, WIDTH = 128, 64
# Part -> [H, W, C] of its input.
PARTS = {
  "conv1": (32, 32, 3),
  "conv2": (16, 16, WIDTH),
  "conv3": (8, 8, WIDTH),
  "conv4": (4, 4, WIDTH),
  "max-pool and ReLU 1": (32, 32, WIDTH),
  "BatchNorm 1": (32, 32, WIDTH),
}
_MODULES = {"ours": "benchmarks.parts", "torch": "benchmarks.torch_parts"}


def measure(how: How) -> list[Table]:
  """Measures all parts, ours and torch's by turns."""
  names = [f"{part}/{d}" for part in PARTS for d in ("forward", "both")]
  with Worker(_MODULES["ours"]) as ours, Worker(_MODULES["torch"]) as torch:
    workers = {"ours": ours, "torch": torch}
    contestants = {}
    for name in names:
      for side, worker in workers.items():
        worker.prepare(name)
        contestants[f"{side} {name}"] = partial(worker.run, name)
    times = alternate(contestants, how)
  rows = [
    {
      "part": name.replace("/both", ", with gradients").replace("/", ", "),
      "ours, ms": 1000 * times.median(f"ours {name}"),
      "torch, ms": 1000 * times.median(f"torch {name}"),
      "time: ours / torch": times.ratio(f"ours {name}", f"torch {name}"),
    }
    for name in names
  ]
  return [Table(f"parts of the digits CNN, batch {BATCH}", rows)]


def drawn(part: str) -> np.ndarray:
  """The input of a part, float32 [B, H, W, C]."""
  shape = (BATCH, *PARTS[part])
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def prepare(name: str) -> Contestant:
  """Makes a part such as `conv2/both`."""
  keep_memory()
  part, direction = name.split("/")
  x = jax.device_put(drawn(part))
  function, params = _part(part, x)
  if direction == "forward":
    return Contestant(repeat(partial(jax.jit(function), params, x)), {})

  @jax.jit
  def both(params, x, gradient):
    y, pullback = jax.vjp(function, params, x)
    d_params, d_x = pullback(gradient)
    # Nobody needs the gradient of the images.
    return y, d_params, () if part == "conv1" else d_x

  gradient = jnp.ones_like(jax.eval_shape(function, params, x))
  return Contestant(repeat(partial(both, params, x, gradient)), {})


def _part(part: str, x: jax.Array):
  """A part as a function of (params, x), and its parameters."""
  if part.startswith("max-pool"):
    return (lambda _, x: jax.nn.relu(max_pool(x))), ()
  module, arguments = Conv(WIDTH, (3, 3)), {}
  if part.startswith("BatchNorm"):
    module, arguments = BatchNorm(), {"use_running_average": False}
  variables = module.init(jax.random.key(0), x, **arguments)
  params = variables.pop("params")

  def function(params, x):
    y, _ = module.apply(
      {"params": params, **variables}, x, **arguments, mutable=["batch_stats"]
    )
    return y

  return function, params
