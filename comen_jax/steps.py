"""Pure steps, jitted once per stage. What varies is bound in `train.py`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from comen_jax.data.batches import Batch
from comen_jax.data.views import Views
from comen_jax.metrics import EvalMetrics
from comen_jax.nn.backbone import Outputs
from comen_jax.sharding import Shardings
from comen_jax.train_state import TrainState

Metrics = dict[str, jax.Array]
# (params, state, batch, key) -> (scalar, (batch_stats, memory, metrics))
Loss = Callable[..., tuple[jax.Array, tuple[Any, Any, Metrics]]]


def train_step(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  loss: Loss,
  tx: optax.GradientTransformation,
  trainable: Callable[[Any], Any],
  views: Views,
) -> tuple[TrainState, Metrics]:
  """One update of a stage. `key` is the run's; the step number makes it fresh.

  Where `trainable` is False the update is zero, after decay and momentum, so a
  frozen parameter stays as it is to the last bit.
  """
  view_key, loss_key = jax.random.split(jax.random.fold_in(key, state.step))
  batch = batch.replace(image=views.train(view_key, batch.image))
  grad_fn = jax.value_and_grad(loss, has_aux=True)
  (value, aux), grads = grad_fn(state.params, state, batch, loss_key)
  batch_stats, memory, metrics = aux
  updates, opt_state = tx.update(grads, state.opt_state, state.params)
  updates = jax.tree.map(
    lambda update, trains: update if trains else jnp.zeros_like(update),
    updates,
    trainable(state.params),
  )
  state = state.replace(
    params=optax.apply_updates(state.params, updates),
    batch_stats=batch_stats,
    memory=memory,
    opt_state=opt_state,
    step=state.step + 1,
  )
  return state, {"loss": value, **metrics}


def feature_step(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  training_view: bool,
  *,
  model: nn.Module,
  views: Views,
) -> Outputs:
  """The network in evaluation mode, on the evaluation or a training view."""
  images = (
    views.train(key, batch.image)
    if training_view
    else views.evaluate(batch.image)
  )
  return predict(model, state, images)


def eval_step(
  state: TrainState, batch: Batch, *, model: nn.Module, views: Views
) -> EvalMetrics:
  """Masked (sum, count) of one batch; merge over batches, then compute."""
  outputs = predict(model, state, views.evaluate(batch.image))
  loss = optax.softmax_cross_entropy_with_integer_labels(
    outputs.logits, batch.label
  )
  return EvalMetrics.single_from_model_output(
    logits=outputs.logits, labels=batch.label, loss=loss, mask=batch.mask
  )


def predict(model: nn.Module, state: TrainState, images: jax.Array) -> Outputs:
  """images [B, H, W, 3], normalised -> the backbone's outputs, no dropout."""
  variables = {
    "params": state.params["backbone"],
    "batch_stats": state.batch_stats,
  }
  return model.apply(variables, images, train=False)


def forward(
  model: nn.Module,
  params: Any,
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  domain_probs: jax.Array | None = None,
) -> tuple[Outputs, Any]:
  """The backbone in training mode -> (outputs, new running statistics)."""
  outputs, updated = model.apply(
    {"params": params["backbone"], "batch_stats": state.batch_stats},
    batch.image,
    train=True,
    domain_probs=domain_probs,
    mutable=["batch_stats"],
    rngs={"dropout": key},
  )
  return outputs, updated.get("batch_stats", {})  # None of them without norms.


def jit_train_step(shardings: Shardings, **bound: Any) -> Callable:
  """`train_step` with its keyword arguments bound; the state is donated."""
  replicated, rows = shardings.replicated, shardings.rows
  return jax.jit(
    partial(train_step, **bound),
    in_shardings=(replicated, rows, replicated),
    out_shardings=replicated,
    donate_argnums=0,
  )


def jit_eval_step(shardings: Shardings, model: nn.Module, views: Views):
  """`eval_step`; its metrics are whole on every process."""
  return jax.jit(
    partial(eval_step, model=model, views=views),
    in_shardings=(shardings.replicated, shardings.rows),
    out_shardings=shardings.replicated,
  )


def jit_feature_step(shardings: Shardings, model: nn.Module, views: Views):
  """`feature_step`; its outputs are whole on every process."""
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
  """`step` over evaluation batches of `count` rows -> unpadded numpy."""
  parts = [jax.device_get(step(batch)) for batch in batches]
  return jax.tree.map(lambda *xs: np.concatenate(xs)[:count], *parts)
