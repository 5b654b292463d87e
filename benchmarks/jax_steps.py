"""Our steps, as a run has them: built from a config, jitted, on all devices.

Only the data are made: noise that lies on the devices before the clock starts.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import made
from benchmarks.worker import Contestant
from comen_jax import config as config_lib
from comen_jax.data import batches
from comen_jax.experiment import Experiment, build
from comen_jax.process.allocator import keep_memory
from comen_jax.prototypes import Prototypes
from comen_jax.sharding import Shardings
from comen_jax.train_state import TrainState

# Row -> method, and the stage whose step is timed; "" times the evaluation.
ROWS = {
  "deepall": ("deepall", "train"),
  "deepall_bn": ("deepall_bn", "train"),
  "discover": ("comen", "discover"),
  "encode": ("comen", "encode"),
  "eval_bn": ("deepall_bn", ""),
  "eval_comen": ("comen", ""),
}
_BATCHES = 4


def prepare(name: str) -> Contestant:
  """Makes `matmul`, or a row such as `digits/encode`."""
  keep_memory()  # As each of our commands does.
  if name == "matmul":
    return _matmul()
  network, row = name.split("/")
  method, stage = ROWS[row]
  sizes = made.NETWORKS[network]
  experiment = make_experiment(sizes, method)
  state = make_state(experiment)
  if not stage:
    return Contestant(_evaluation(experiment, state, sizes.eval_batch), {})
  names = [s.name for s in experiment.method.stages]
  step = experiment.train_steps[names.index(stage)]
  return Contestant(training(experiment, state, step), {})


def make_experiment(
  sizes: made.Network,
  method: str,
  shardings: Shardings | None = None,
  augment: str = "none",
) -> Experiment:
  """Builds the experiment of a config on noise."""
  config = made.load_config(sizes.config)
  config.method, config.pretrained = method, ""
  config.augment = augment
  config.store_size = config.image_size = sizes.size
  config.batch_size, config.eval_batch_size = sizes.batch, sizes.eval_batch
  config.num_domains = made.NUM_DOMAINS
  config.learning_rate = made.LEARNING_RATE
  config_lib.check(config)
  # Three quarters are sources, and three quarters of these are for training.
  count = max(2 * _BATCHES * sizes.batch, sizes.eval_batch)
  dataset = made.dataset(made.images(count, sizes.size), sizes.num_classes)
  return build(config, dataset, shardings)


def make_state(experiment: Experiment) -> TrainState:
  """Makes the first state; COMEN gets prototypes and a domain for each row."""
  state = experiment.init()
  if not state.memory:
    return state
  shape = state.memory.prototypes.values.shape
  values = np.random.default_rng(1).uniform(0, 1, shape).astype(np.float32)
  rows = np.arange(len(state.memory.domains), dtype=np.int32)
  memory = state.memory.replace(
    prototypes=Prototypes(jnp.asarray(values), jnp.ones(shape[:2], bool)),
    domains=jnp.asarray(rows // 3 % made.NUM_DOMAINS),
  )
  state = state.replace(memory=memory)
  return jax.device_put(state, experiment.shardings.replicated)


def training(
  experiment: Experiment, state: TrainState, step: Callable
) -> Callable[[int], None]:
  """Returns a function that makes that many training steps, from `state` on."""
  ready = list(itertools.islice(experiment.train_batches(0), _BATCHES))
  jax.block_until_ready(ready)
  turn = itertools.cycle(ready)

  def run(steps: int) -> None:
    nonlocal state
    for _ in range(steps):
      state, metrics = step(state, next(turn), experiment.key)
    jax.block_until_ready((state, metrics))

  return run


def _evaluation(
  experiment: Experiment, state: TrainState, batch_size: int
) -> Callable[[int], None]:
  rows = np.arange(batch_size)
  batch = next(
    batches.eval_batches(
      experiment.dataset,
      rows,
      batch_size=batch_size,
      sharding=experiment.shardings.rows,
    )
  )
  return repeat(
    partial(experiment.eval_step, state, jax.block_until_ready(batch))
  )


def repeat(call: Callable[[], Any]) -> Callable[[int], None]:
  """Returns a function that makes that many calls and waits for them."""

  def run(steps: int) -> None:
    for _ in range(steps):
      result = call()
    jax.block_until_ready(result)

  return run


def _matmul() -> Contestant:
  shape = (made.MATMUL, made.MATMUL)
  a, b = (
    jnp.asarray(np.random.default_rng(i).normal(size=shape), jnp.float32)
    for i in range(2)
  )
  return Contestant(repeat(partial(jax.jit(jnp.dot), a, b)), {})
