"""All that changes while training, in one pytree of one structure."""

from collections.abc import Sequence
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax

from comen_jax.errors import UserError


@flax.struct.dataclass
class TrainState:
  """The state of a run. Every stage reads and writes the same tree.

  Attributes:
    params: {"backbone": ..., and the parameters that the method adds}.
    batch_stats: running statistics of the backbone.
    memory: what the method remembers between steps, any pytree.
    opt_state: optax state.
    step: int32 [], number of training steps done.
  """

  params: Any
  batch_stats: Any
  memory: Any
  opt_state: Any
  step: jax.Array

  @classmethod
  def create(
    cls,
    params: Any,
    batch_stats: Any,
    memory: Any,
    tx: optax.GradientTransformation,
  ) -> "TrainState":
    """Makes the first state, with the optimiser's first state inside."""
    return cls(
      params=params,
      batch_stats=batch_stats,
      memory=memory,
      opt_state=tx.init(params),
      step=jnp.zeros((), jnp.int32),
    )


def paths_above(keys: Sequence[Any], paths: Sequence[str]) -> list[str]:
  """Those of `paths` that are the leaf's own path, or lead to it.

  Args:
    keys: path of a leaf in the parameters, or in a tree that holds trees like
      the parameters, such as the optimiser's state.
    paths: paths of parameters, such as "backbone/domain_predictor".
  """
  names = [k.key for k in keys if isinstance(k, jax.tree_util.DictKey)]
  path = "/".join(names) + "/"
  return [p for p in paths if path.startswith(p + "/")]


def forget_momentum(state: TrainState, paths: Sequence[str]) -> TrainState:
  """Sets the optimiser's state of parameters to zero, as it is at the start.

  Call it when a parameter is replaced: its momentum belongs to the old value.
  """

  def forget(keys, value: jax.Array) -> jax.Array:
    return jnp.zeros_like(value) if paths_above(keys, paths) else value

  opt_state = jax.tree_util.tree_map_with_path(forget, state.opt_state)
  return state.replace(opt_state=opt_state)


def check_outcome(
  state: TrainState, loss: Any, batch_stats: Any, memory: Any, metrics: Any
) -> None:
  """Raises UserError if a loss returned what training cannot go on with.

  It looks at shapes and types alone, so it costs nothing in a compiled step.

  Args:
    state: the state that the loss got.
    loss: the loss, which must be a scalar.
    batch_stats: new running statistics, in the form of the state's.
    memory: new memory, in the form of the state's.
    metrics: values for the log by name, scalars.
  """
  for name, value in (("the loss", loss), *metrics.items()):
    if jnp.shape(value):
      raise UserError(
        f"{name} has shape {jnp.shape(value)}: return one number, such as the"
        " mean"
      )
  for name, new, old in (
    ("running statistics", batch_stats, state.batch_stats),
    ("memory", memory, state.memory),
  ):
    now, before = _forms(new), _forms(old)
    for path in sorted(now.keys() | before.keys()):
      if now.get(path) != before.get(path):
        raise UserError(
          f"{name}{path} is {now.get(path, 'missing')} after the loss and"
          f" {before.get(path, 'missing')} before it: a loss must keep the"
          " structure, shapes and types"
        )


def _forms(tree: Any) -> dict[str, str]:
  """Type and shape of each leaf, such as "float32[3, 4]", by its path."""
  return {
    jax.tree_util.keystr(path): f"{jnp.result_type(x)}{list(jnp.shape(x))}"
    for path, x in jax.tree_util.tree_leaves_with_path(tree)
  }
