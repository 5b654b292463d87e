"""SDNorm alone against nn.BatchNorm, forward and backward."""

from functools import partial

import flax.linen as nn
import jax
import numpy as np

from benchmarks.alternate import How, Worker, alternate
from benchmarks.jax_steps import repeat
from benchmarks.tables import Table
from benchmarks.worker import Contestant
from comen_jax.nn.sdnorm import SDNorm
from comen_jax.process.allocator import keep_memory

SHAPES = ((128, 32, 32, 64), (32, 56, 56, 64))
DOMAINS = (1, 3, 8, 32)


def measure(how: How) -> list[Table]:
  """Measures both shapes and all numbers of domains M."""
  tables = []
  for shape in SHAPES:
    size = "x".join(map(str, shape))
    names = [f"{size}/{M}" for M in (0, *DOMAINS)]
    with Worker("benchmarks.norms") as worker:
      for name in names:
        worker.prepare(name)
      times = alternate({n: partial(worker.run, n) for n in names}, how)
    batch_norm, one, *_ = names
    rows = [
      {
        "norm": f"SDNorm, M = {M}" if M else "nn.BatchNorm",
        "ms": 1000 * times.median(name),
        "/ BatchNorm": times.ratio(name, batch_norm),
        "/ M = 1": times.ratio(name, one) if M else None,
        "seconds of rounds": times.seconds[name],
      }
      for name, M in zip(names, (0, *DOMAINS))
    ]
    tables.append(Table(f"norm alone, forward and backward, [{size}]", rows))
  return tables


def prepare(name: str) -> Contestant:
  """Makes a norm such as `32x56x56x64/3`; M = 0 is nn.BatchNorm."""
  keep_memory()
  size, domains = name.split("/")
  shape, M = tuple(map(int, size.split("x"))), int(domains)
  rng = np.random.default_rng(0)
  z, cotangent = (
    jax.device_put(rng.normal(size=shape).astype(np.float32)) for _ in range(2)
  )
  if M:
    logits = rng.normal(size=(shape[0], M)).astype(np.float32)
    norm, others = SDNorm(M), (jax.nn.softmax(logits),)
  else:
    norm, others = nn.BatchNorm(momentum=0.9, epsilon=1e-5), ()
  variables = norm.init(jax.random.key(0), z, *others, use_running_average=True)

  @jax.jit
  def step(variables, z, others, cotangent):
    def forward(params, z):
      return norm.apply(
        {**variables, "params": params},
        z,
        *others,
        use_running_average=False,
        mutable=["batch_stats"],
      )

    # All that a training step needs: output, statistics and gradients.
    y, pullback, stats = jax.vjp(forward, variables["params"], z, has_aux=True)
    return y, stats, pullback(cotangent)

  return Contestant(repeat(partial(step, variables, z, others, cotangent)), {})
