"""Stops a run whose loss or state is not finite, and says where that began."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.errors import UserError
from comen_jax.run.plan import Unit
from comen_jax.train_state import TrainState

_EVERY = 10  # Steps between two looks.
_LATE = 3  # A look is at metrics of two steps ago: it waits for nothing.
_WHAT_NOW = (
  "the last good checkpoint is kept; --debug_nans names the operation that"
  " makes the first NaN"
)


class Watch:
  """Watches the losses of an epoch without waiting for any step."""

  def __init__(self, unit: Unit, first: int):
    """Begins an epoch; `first` is the number of steps before it."""
    self._unit, self._first = unit, first

  def step(self, history: list[dict[str, jax.Array]]) -> None:
    """Looks at every tenth step; a loss that was NaN once stays so."""
    if len(history) % _EVERY == 0:
      late = history[max(0, len(history) - _LATE)]
      if not np.isfinite(late["loss"]):
        self.end(history)

  def end(self, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the metrics of an epoch's steps, fetched from the devices.

    It raises UserError at the first loss that is not finite.
    """
    history = jax.device_get(history)
    for number, metrics in enumerate(history, self._first + 1):
      bad = {
        name: float(value)
        for name, value in metrics.items()
        if name.startswith("loss") and not np.isfinite(value)
      }
      # The sum says nothing more if one of its terms is known.
      terms = {name: v for name, v in bad.items() if name != "loss"} or bad
      if terms:
        named = ", ".join(f"{name} is {v}" for name, v in terms.items())
        where = f"{self._unit.stage.name}, epoch {self._unit.run_epoch + 1}"
        raise UserError(f"{named} at step {number} ({where}): {_WHAT_NOW}")
    return history


def check_state(state: TrainState) -> None:
  """Raises UserError if a state that is about to be saved is not finite.

  The loss shows it only at the next step, and the last good checkpoint would
  be gone by then.
  """
  learned = {
    "params": state.params,
    "batch_stats": state.batch_stats,
    "opt_state": state.opt_state,
  }
  for keys, leaf in jax.tree_util.tree_leaves_with_path(learned):
    if jnp.issubdtype(leaf.dtype, jnp.inexact):
      values = np.asarray(leaf)
      bad = values[~np.isfinite(values)]
      if bad.size:
        name = jax.tree_util.keystr(keys, simple=True, separator="/")
        raise UserError(
          f"{name} has {bad.size} values such as {bad[0]} after step"
          f" {int(state.step)}: {_WHAT_NOW}"
        )
