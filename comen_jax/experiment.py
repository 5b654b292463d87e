"""All that a run is made of, before its first step."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import numpy as np
import optax

from comen_jax import steps
from comen_jax.data import batches
from comen_jax.data.dataset import Dataset, Split
from comen_jax.data.sources import Sources
from comen_jax.data.views import Views
from comen_jax.metrics import EvalMetrics
from comen_jax.nn import pretrained
from comen_jax.nn.backbone import Outputs
from comen_jax.sharding import Shardings
from comen_jax.stage import Method, Report, Stage
from comen_jax.train_state import TrainState


class Experiment(NamedTuple):
  """Data, network and method, bound to devices.

  Attributes:
    dataset: all rows.
    split: which rows are for training, validation and test.
    sources: what a method may see of them.
    method: its stages.
    views: what the network sees of a stored picture.
    tx: the optimiser.
    key: the run's key, on every device.
    shardings: of state and batches.
    batch_size: of training.
    eval_batch_size: of evaluation.
    seed: of the order of batches.
    weights: where pretrained weights went; None at a random start.
    init: makes the first state, on every device.
    eval_step, feature_step: jitted.
  """

  dataset: Dataset
  split: Split
  sources: Sources
  method: Method
  views: Views
  tx: optax.GradientTransformation
  key: jax.Array
  shardings: Shardings
  batch_size: int
  eval_batch_size: int
  seed: int
  weights: pretrained.Report | None
  init: Callable[[], TrainState]
  eval_step: Callable[..., EvalMetrics]
  feature_step: Callable[..., Outputs]

  @property
  def steps_per_epoch(self) -> int:
    return len(self.split.train_rows) // self.batch_size

  def train_step(self, stage: Stage) -> Callable:
    """The jitted step of a stage: (state, batch, key) -> (state, metrics)."""
    return steps.jit_train_step(
      self.shardings,
      loss=stage.loss,
      tx=self.tx,
      trainable=stage.trainable,
      views=self.views,
    )

  def train_batches(self, epoch: int) -> Iterator[batches.Batch]:
    """Batches of an epoch, counted over the whole run."""
    return batches.train_batches(
      self.dataset,
      self.split.train_rows,
      batch_size=self.batch_size,
      seed=self.seed,
      epoch=epoch,
      sharding=self.shardings.rows,
    )

  def prepare(
    self, state: TrainState, number: int
  ) -> tuple[TrainState, Report]:
    """Runs what stage `number` does before its first epoch."""
    # Steps fold their number into the run's key; this one is never reached.
    key = jax.random.fold_in(jax.random.fold_in(self.key, 2**31 - 1), number)
    state, report = self.method.stages[number].prepare(
      state, self.sources, self.feature_step, key
    )
    return jax.device_put(state, self.shardings.replicated), report

  def evaluate(self, state: TrainState, rows: np.ndarray) -> EvalMetrics:
    """Accuracy and loss over `rows`, on the host."""
    total = EvalMetrics.empty()
    for batch in self._eval_batches(rows):
      total = total.merge(self.eval_step(state, batch))
    return jax.device_get(total)

  def outputs(self, state: TrainState, rows: np.ndarray) -> Outputs:
    """The network's outputs for `rows` [n], as numpy [n, ...]."""
    step = lambda batch: self.feature_step(state, batch, self.key, False)
    return steps.map_rows(step, self._eval_batches(rows), len(rows))

  def _eval_batches(self, rows: np.ndarray) -> Iterator[batches.Batch]:
    return batches.eval_batches(
      self.dataset,
      rows,
      batch_size=self.eval_batch_size,
      sharding=self.shardings.rows,
    )


def make_init(
  model: nn.Module,
  method: Method,
  tx: optax.GradientTransformation,
  image_size: int,
  key: jax.Array,
  sharding: jax.sharding.Sharding,
  weights: Any,
) -> Callable[[], TrainState]:
  """How the first state is born: on the mesh, never on device 0.

  Args:
    model: the backbone.
    method: adds parameters and memory.
    tx: the optimiser.
    image_size: of what the backbone sees.
    key: the run's.
    sharding: of the state.
    weights: pretrained, numpy: that part of the backbone's variables which is
      not to be random.
  """

  def init(key: jax.Array, weights: Any) -> TrainState:
    model_key, method_key = jax.random.split(key)
    image = np.zeros((1, image_size, image_size, 3), np.float32)
    variables = model.init(model_key, image, train=False)
    variables = pretrained.merge(variables, weights)
    extra, memory = method.init(method_key)
    params: dict[str, Any] = {"backbone": variables["params"], **extra}
    stats = variables.get("batch_stats", {})  # None of them without norms.
    return TrainState.create(params, stats, memory, tx)

  return partial(jax.jit(init, out_shardings=sharding), key, weights)
