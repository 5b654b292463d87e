"""Pure steps of training and evaluation, jitted once per stage.

What varies (loss, optimiser, views, ...) is bound in `experiment.build`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from comen_jax.data.batches import Batch
from comen_jax.data.views import Views
from comen_jax.metrics import EvalMetrics
from comen_jax.nn.backbone import Outputs, Tap
from comen_jax.sharding import Shardings, paced
from comen_jax.train_state import TrainState, check_outcome, paths_above

Metrics = dict[str, jax.Array]
TrainStep = Callable[[TrainState, Batch, jax.Array], tuple[TrainState, Metrics]]
EvalStep = Callable[[TrainState, Batch], EvalMetrics]


class Loss(Protocol):
  """A stage's loss: a pure function of the state and a batch.

  It reads the parameters from `state.params`. It returns the scalar loss, and
  (batch_stats, memory, metrics): the new running statistics, the new memory of
  the method, and scalars for the log.
  """

  def __call__(
    self, state: TrainState, batch: Batch, key: jax.Array
  ) -> tuple[jax.Array, tuple[Any, Any, Metrics]]: ...


class Diagnose(Protocol):
  """Measures a batch of a stage: a pure function that gives scalars."""

  def __call__(
    self, state: TrainState, batch: Batch, key: jax.Array
  ) -> Metrics: ...


class FeatureStep(Protocol):
  """`feature_step`, jitted, with the network and its views bound."""

  def __call__(
    self,
    state: TrainState,
    batch: Batch,
    key: jax.Array,
    training_view: bool,
  ) -> Outputs: ...


def train_step(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  loss: Loss,
  tx: optax.GradientTransformation,
  scales: Mapping[str, float],
  views: Views,
) -> tuple[TrainState, Metrics]:
  """Updates the state once.

  Args:
    state: all that training changes.
    batch: stored images; `views.train` turns them into the network's input.
    key: the run's key; the step number makes it fresh.
    loss: the stage's loss.
    tx: the optimiser.
    scales: factors of the updates by path of the parameters; those of factor 0
      keep their value, to the last bit.
    views: how stored images become inputs of the network.
  """
  view_key, loss_key = jax.random.split(jax.random.fold_in(key, state.step))
  batch = training_view(batch, views, view_key)

  def of_params(params: Any):
    value, aux = loss(state.replace(params=params), batch, loss_key)
    check_outcome(state, value, *aux)
    return value, aux

  (value, aux), grads = jax.value_and_grad(of_params, has_aux=True)(
    state.params
  )
  batch_stats, memory, metrics = aux
  updates, opt_state = tx.update(grads, state.opt_state, state.params)
  state = state.replace(
    params=optax.apply_updates(state.params, scaled(updates, scales)),
    batch_stats=batch_stats,
    memory=memory,
    opt_state=hold(opt_state, state.opt_state, scales),
    step=state.step + 1,
  )
  return state, {"loss": value, **metrics}


def training_view(batch: Batch, views: Views, key: jax.Array) -> Batch:
  """The batch with the training view of its images; `stored` keeps them."""
  return batch.replace(image=views.train(key, batch.image), stored=batch.image)


def scaled(updates: Any, scales: Mapping[str, float]) -> Any:
  """Multiplies the updates at and below paths of parameters by factors.

  This comes after weight decay and momentum, which would move a parameter even
  without a gradient. A factor 0 gives exactly zero.

  Args:
    updates: a pytree of dicts, like the parameters.
    scales: factors by path, such as {"backbone/domain_predictor": 0.0}. Where
      two paths lead to a parameter, both factors count.
  """
  used = set()

  def update(keys, value: jax.Array) -> jax.Array:
    hits = paths_above(keys, tuple(scales))
    used.update(hits)
    factor = math.prod(scales[path] for path in hits)
    if not factor:
      return jnp.zeros_like(value)
    return factor * value if hits else value

  updates = jax.tree_util.tree_map_with_path(update, updates)
  if unknown := set(scales) - used:
    raise ValueError(f"no parameters at {', '.join(sorted(unknown))}")
  return updates


def hold(new: Any, old: Any, scales: Mapping[str, float]) -> Any:
  """The new state of the optimiser, but the old one where a factor is 0.

  Else weight decay would fill the momentum of a frozen parameter, and the first
  steps after it is free again would follow it.
  """
  frozen = [path for path, factor in scales.items() if not factor]

  def choose(keys, new: jax.Array, old: jax.Array) -> jax.Array:
    return old if paths_above(keys, frozen) else new

  return jax.tree_util.tree_map_with_path(choose, new, old)


def feature_step(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  training_view: bool,
  *,
  model: nn.Module,
  views: Views,
) -> Outputs:
  """Runs the network in evaluation mode, on the evaluation or training view."""
  images = (
    views.train(key, batch.image)
    if training_view
    else views.evaluate(batch.image)
  )
  return predict(model, state, images)


def eval_step(
  state: TrainState, batch: Batch, *, model: nn.Module, views: Views
) -> EvalMetrics:
  """Counts of one batch, masked; merge over batches, then compute."""
  outputs = predict(model, state, views.evaluate(batch.image))
  loss = optax.softmax_cross_entropy_with_integer_labels(
    outputs.logits, batch.label
  )
  return EvalMetrics.single_from_model_output(
    logits=outputs.logits, labels=batch.label, loss=loss, mask=batch.mask
  )


def predict(model: nn.Module, state: TrainState, images: jax.Array) -> Outputs:
  """Runs the network in evaluation mode on normalised images [B, H, W, 3]."""
  variables = {
    "params": state.params["backbone"],
    "batch_stats": state.batch_stats,
  }
  return model.apply(variables, images, train=False)


def forward(
  model: nn.Module,
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  domain_probs: jax.Array | None = None,
  *,
  tap: Tap | None = None,
  enter: str = "",
) -> tuple[Outputs, Any]:
  """Runs the network in training mode -> (outputs, new running statistics).

  Args:
    model: the backbone.
    state: parameters and running statistics.
    batch: images, or what the network has at the point `enter`.
    key: random key of dropout.
    domain_probs: [B, M], replaces F_d's softmax; only SDNorm uses it.
    tap: sees and may change the value at each point; see `Backbone`.
    enter: name of the point to start after.
  """
  outputs, updated = model.apply(
    {"params": state.params["backbone"], "batch_stats": state.batch_stats},
    batch.image,
    train=True,
    domain_probs=domain_probs,
    tap=tap,
    enter=enter,
    mutable=["batch_stats"],
    rngs={"dropout": key},
  )
  # A network without norms has no running statistics.
  return outputs, updated.get("batch_stats", {})


def jit_train_step(
  shardings: Shardings,
  *,
  loss: Loss,
  tx: optax.GradientTransformation,
  scales: Mapping[str, float],
  views: Views,
) -> TrainStep:
  """Jits `train_step`; the state is donated."""
  replicated, rows = shardings.replicated, shardings.rows
  step = jax.jit(
    partial(train_step, loss=loss, tx=tx, scales=scales, views=views),
    in_shardings=(replicated, rows, replicated),
    out_shardings=replicated,
    donate_argnums=0,
  )
  return paced(step, shardings)


def jit_diagnose_step(
  shardings: Shardings, diagnose: Diagnose, views: Views
) -> Diagnose:
  """Jits `diagnose` on the training view of a batch."""

  def step(state: TrainState, batch: Batch, key: jax.Array) -> Metrics:
    view_key, own_key = jax.random.split(jax.random.fold_in(key, state.step))
    batch = training_view(batch, views, view_key)
    return diagnose(state, batch, own_key)

  replicated, rows = shardings.replicated, shardings.rows
  return jax.jit(
    step, in_shardings=(replicated, rows, replicated), out_shardings=replicated
  )


def jit_eval_step(
  shardings: Shardings, model: nn.Module, views: Views
) -> EvalStep:
  """Jits `eval_step`; every process gets the metrics of the whole batch."""
  step = jax.jit(
    partial(eval_step, model=model, views=views),
    in_shardings=(shardings.replicated, shardings.rows),
    out_shardings=shardings.replicated,
  )
  return paced(step, shardings)


def jit_feature_step(
  shardings: Shardings, model: nn.Module, views: Views
) -> FeatureStep:
  """Jits `feature_step`; every process gets the outputs of the whole batch."""
  replicated, rows = shardings.replicated, shardings.rows
  return jax.jit(
    partial(feature_step, model=model, views=views),
    in_shardings=(replicated, rows, replicated),
    out_shardings=replicated,
    static_argnums=3,
  )


def map_rows(
  step: Callable[[Batch], Any], batches: Iterator[Batch], count: int
) -> Any:
  """Applies `step` to evaluation batches of `count` rows -> unpadded numpy."""
  parts = [jax.device_get(step(batch)) for batch in batches]
  return jax.tree.map(lambda *xs: np.concatenate(xs)[:count], *parts)
