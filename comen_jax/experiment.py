"""Everything that a run is made of, built from a config before its first step.

This is the one place where a config becomes values. The functions below it
take values, not `config`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from ml_collections import ConfigDict

from comen_jax import config as config_lib
from comen_jax import optimizer, sharding, steps
from comen_jax.data import batches
from comen_jax.data import registry as datasets
from comen_jax.data.dataset import Dataset, Split, leave_one_out
from comen_jax.data.sources import Sources
from comen_jax.data.views import Views, make_views
from comen_jax.methods import registry as methods
from comen_jax.methods.base import Method, Report, Task
from comen_jax.metrics import EvalMetrics
from comen_jax.nn import pretrained
from comen_jax.nn import registry as backbones
from comen_jax.nn.backbone import STYLE_COPY, Backbone, Outputs
from comen_jax.process import agreement
from comen_jax.sharding import Shardings
from comen_jax.train_state import TrainState


class Experiment(NamedTuple):
  """Data, network, method and steps of a run, bound to devices.

  Attributes:
    dataset: all rows of the data set.
    split: rows for training, validation and test.
    sources: what a method may see of the source images.
    method: the stages of training.
    setting: what results say about the run's data, method and length.
    weights: report on the pretrained weights; None at a random start.
    views: how stored images become inputs of the network.
    shardings: shardings of state and batches.
    sizes: numbers of images in a batch.
    seed: seed of the run.
    key: the run's key, on every device.
    candidate_epochs: number of last epochs among which one is chosen.
    oracle: whether the target is tested at each of these epochs.
    init: makes the first state, on every device.
    train_steps: the jitted training step of each stage.
    diagnose_steps: the jitted diagnosis of each stage, or None.
    eval_step: the jitted evaluation step.
    feature_step: the jitted feature step.
  """

  dataset: Dataset
  split: Split
  sources: Sources
  method: Method
  setting: dict[str, Any]
  weights: pretrained.Report | None
  views: Views
  shardings: Shardings
  sizes: config_lib.BatchSizes
  seed: int
  key: jax.Array
  candidate_epochs: int
  oracle: bool
  init: Callable[[], TrainState]
  train_steps: tuple[steps.TrainStep, ...]
  diagnose_steps: tuple[steps.Diagnose | None, ...]
  eval_step: steps.EvalStep
  feature_step: steps.FeatureStep

  @property
  def identity(self) -> dict[str, str]:
    """Data, target and weights: a run's folder keeps to them."""
    names = ("manifest", "target", "weights", *self.sizes.lowered)
    # A user's own folder may be renamed.
    dataset = "folder" if self.dataset.own else self.dataset.name
    return {"dataset": dataset} | {name: self.setting[name] for name in names}

  @property
  def steps_per_epoch(self) -> int:
    return len(self.split.train_rows) // self.sizes.train

  def train_batches(self, epoch: int, first=0) -> Iterator[batches.Batch]:
    """Training batches of an epoch of the run, from number `first` on."""
    return batches.train_batches(
      self.dataset,
      self.split.train_rows,
      batch_size=self.sizes.train,
      seed=self.seed,
      epoch=epoch,
      sharding=self.shardings.rows,
      first=first,
    )

  def prepare(
    self, state: TrainState, number: int
  ) -> tuple[TrainState, Report]:
    """Runs the `prepare` of stage `number`."""
    stage = self.method.stages[number]
    # No step folds this number into the key. The key is on one device, as all
    # that a process computes by itself.
    key = jax.random.fold_in(jax.random.key(self.seed), 2**31 - 1)
    key = jax.random.fold_in(key, number)
    if stage.prepare_each_epoch:
      key = jax.random.fold_in(key, int(state.step))
    after, report = stage.prepare(state, self.sources, self.feature_step, key)
    return agreement.place(after, self.shardings.replicated), report

  def evaluate(self, state: TrainState, rows: np.ndarray) -> EvalMetrics:
    """Accuracy and loss over `rows`, on the host."""
    total = EvalMetrics.empty()
    for batch in self._eval_batches(rows):
      total = total.merge(self.eval_step(state, batch))
    return jax.device_get(total)

  def outputs(self, state: TrainState, rows: np.ndarray) -> Outputs:
    """Outputs of the network for `rows` [n], as numpy [n, ...]."""
    step = lambda batch: self.feature_step(state, batch, self.key, False)
    return steps.map_rows(step, self._eval_batches(rows), len(rows))

  def _eval_batches(self, rows: np.ndarray) -> Iterator[batches.Batch]:
    return batches.eval_batches(
      self.dataset,
      rows,
      batch_size=self.sizes.evaluation,
      sharding=self.shardings.rows,
    )


def build(
  config: ConfigDict,
  dataset: Dataset | None = None,
  shardings: Shardings | None = None,
) -> Experiment:
  """Builds the experiment that a config describes.

  Args:
    config: the config of a run, already checked.
    dataset: rows to use in place of the config's data set.
    shardings: devices to use; default: all of them.
  """
  shardings = shardings or sharding.make()
  if dataset is None:
    config_lib.find_weights(config)
    dataset = datasets.load(config.dataset, config.data_dir, config.store_size)
  split = leave_one_out(dataset, config.target)
  config_lib.check_split(config, split)
  sizes = config_lib.batch_sizes(config, split, shardings.mesh.size)
  model, views = network(config, len(dataset.class_names))
  outputs, variables = backbones.shapes(model, config.image_size)
  weights, report = {}, None
  if config.pretrained:
    weights, report = pretrained.read(config.pretrained, variables)
  steps_per_epoch = len(split.train_rows) // sizes.train
  task = Task(
    model=model,
    views=views,
    norm=model.norm,
    num_classes=len(dataset.class_names),
    num_domains=config.num_domains,
    num_sources=len(split.sources),
    num_rows=len(dataset.labels),
    image_size=config.image_size,
    feature_dim=outputs.features.shape[-1],
    epochs=config.epochs,
    steps_per_epoch=steps_per_epoch,
    stage_shares=tuple(config.stage_shares),
    pretrained=bool(config.pretrained),
  )
  settings = config_lib.method_settings(config)
  method = methods.create(config.method, task, settings)
  tx = _optimizer(config, steps_per_epoch)
  key = jax.random.key(config.seed)
  init = partial(
    _init, model=model, method=method, tx=tx, image_size=config.image_size
  )
  return Experiment(
    dataset=dataset,
    split=split,
    sources=Sources(
      dataset, split, sizes.evaluation, shardings.rows, method.domain_labels
    ),
    method=method,
    setting={
      "dataset": dataset.name,
      "manifest": dataset.manifest,
      "target": split.target,
      "weights": report.sha256 if report else "",
      "sources": list(split.sources),
      "method": config.method,
      "norm": model.norm,
      "domain_labels": method.domain_labels,
      "seed": config.seed,
      "epochs": config.epochs,
      "num_domains": config.num_domains,
      "target_images": len(split.target_rows),
      "chance": 1 / len(dataset.class_names),
      **sizes.lowered,
    },
    weights=report,
    views=views,
    shardings=shardings,
    sizes=sizes,
    seed=config.seed,
    key=sharding.put(key, shardings.replicated),
    candidate_epochs=config_lib.candidate_epochs(config),
    oracle=config.oracle,
    # Born on the mesh, never on device 0.
    init=partial(
      jax.jit(init, out_shardings=shardings.replicated), key, weights
    ),
    train_steps=tuple(
      steps.jit_train_step(
        shardings, loss=stage.loss, tx=tx, scales=stage.factors, views=views
      )
      for stage in method.stages
    ),
    diagnose_steps=tuple(
      stage.diagnose
      and steps.jit_diagnose_step(shardings, stage.diagnose, views)
      for stage in method.stages
    ),
    eval_step=steps.jit_eval_step(shardings, model, views),
    feature_step=steps.jit_feature_step(shardings, model, views),
  )


def network(config: ConfigDict, num_classes: int) -> tuple[Backbone, Views]:
  """The backbone, and how stored images become its inputs.

  It is the same in training, prediction and export.
  """
  model = backbones.build(
    config.backbone,
    num_classes=num_classes,
    norm=config_lib.norm(config),
    num_domains=config.num_domains,
    dtype=jnp.dtype(config.dtype),
    sdnorm=config.sdnorm.to_dict(),
    options=config_lib.backbone_options(config),
  )
  return model, make_views(config.normalise, config.augment, config.image_size)


def _optimizer(
  config: ConfigDict, steps_per_epoch: int
) -> optax.GradientTransformation:
  schedule = optimizer.step_schedule(
    config.learning_rate,
    tuple(config.lr_drops),
    config.lr_factor,
    config.epochs,
    steps_per_epoch,
  )
  return optimizer.sgd(schedule, config.momentum, config.weight_decay)


def _init(
  key: jax.Array,
  weights: Any,
  *,
  model: Backbone,
  method: Method,
  tx: optax.GradientTransformation,
  image_size: int,
) -> TrainState:
  """Makes the first state.

  Args:
    key: the run's key.
    weights: pretrained part of the backbone's variables, numpy; {} if none.
    model: the backbone.
    method: the method, which adds parameters and memory.
    tx: the optimiser.
    image_size: size of the network's input.
  """
  model_key, method_key = jax.random.split(key)
  image = np.zeros((1, image_size, image_size, 3), np.float32)
  variables = model.init(model_key, image, train=False)
  variables = pretrained.merge(variables, weights)
  params = variables["params"]
  # A network without norms has no running statistics.
  stats = variables.get("batch_stats", {})
  if STYLE_COPY in stats:
    first = params[model.style_layers[0]]
    # A copy: a step reuses the memory of the layer itself.
    stats = {**stats, STYLE_COPY: jax.tree.map(jnp.copy, first)}
  extra, memory = method.init(
    method_key, {"params": params, "batch_stats": stats}
  )
  return TrainState.create({"backbone": params, **extra}, stats, memory, tx)
