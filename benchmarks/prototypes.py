"""ProtoGR + ProtoCCL alone, loss and gradient, for more and more prototypes."""

import contextlib
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.alternate import How, Worker, alternate
from benchmarks.jax_steps import repeat
from benchmarks.tables import Table
from benchmarks.worker import Contestant
from comen_jax import losses
from comen_jax.nn.protogr import ProtoGR
from comen_jax.process.allocator import keep_memory

SIZES = ((3, 10), (3, 65), (10, 100), (40, 100))  # M, K
_WIDTH = 512
_STEPS = ("resnet18/encode", "resnet18_batch128/encode")


def measure(how: How) -> list[Table]:
  """Measures all sizes beside our encode steps of ResNet-18."""
  names = [f"{M}x{K}" for M, K in SIZES]
  with contextlib.ExitStack() as stack:
    worker = stack.enter_context(Worker("benchmarks.prototypes"))
    steps = stack.enter_context(Worker("benchmarks.jax_steps"))
    contestants = {}
    for name in _STEPS:
      steps.prepare(name)
      contestants[name] = partial(steps.run, name)
    for name in names:
      worker.prepare(name)
      contestants[name] = partial(worker.run, name)
    times = alternate(contestants, how)
  rows = []
  for i, (M, K) in enumerate(SIZES):
    growth = None
    if i:
      before = math.prod(SIZES[i - 1])
      ratio = times.ratio(names[i], names[i - 1])
      growth = math.log(ratio) / math.log(M * K / before)
    rows.append(
      {
        "nodes": M * K,
        "M": M,
        "K": K,
        "ms": 1000 * times.median(names[i]),
        "growth exponent": growth,
        **{
          f"share of a ResNet-18 step, {batch} images": times.ratio(
            names[i], step
          )
          for batch, step in zip((32, 128), _STEPS)
        },
        "seconds of rounds": times.seconds[names[i]],
      }
    )
  return [Table(f"ProtoGR + ProtoCCL alone, D = {_WIDTH}", rows)]


def prepare(name: str) -> Contestant:
  """Makes the losses of `MxK` prototypes, all of them seen."""
  keep_memory()
  M, K = map(int, name.split("x"))
  rng = np.random.default_rng(0)
  values = jnp.asarray(rng.uniform(0, 1, (M, K, _WIDTH)), jnp.float32)
  seen = jnp.ones((M, K), bool)
  graph = ProtoGR(K)
  flat = lambda x: x.reshape(M * K, *x.shape[2:])
  params = graph.init(jax.random.key(0), flat(values), flat(seen))

  def loss(params, values, seen):
    logits = graph.apply(params, flat(values), flat(seen))
    nodes = losses.node_classification(logits)
    pairs = losses.protoccl(values, seen)
    positive = seen & (seen.sum(axis=0)[None] > 1)
    return losses.masked_mean(nodes, flat(seen)) + losses.masked_mean(
      pairs, positive
    )

  step = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
  return Contestant(repeat(partial(step, params, values, seen)), {})
