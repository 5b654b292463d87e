"""Orbax checkpoints, numbered by how many units of work are done.

A unit is one `prepare` or one epoch. Training steps cannot number checkpoints:
the state before and after a `prepare` has the same step.
"""

import pathlib
from typing import TypeVar

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy

State = TypeVar("State")


class Checkpoints:
  """The newest two checkpoints and the best one, saved asynchronously."""

  def __init__(self, directory: pathlib.Path):
    policy = preservation_policy.AnyPreservationPolicy(
      [
        preservation_policy.LatestN(2),
        preservation_policy.BestN(get_metric_fn=_rank, n=1),
      ]
    )
    self._manager = ocp.CheckpointManager(
      directory.absolute(),  # A relative path fails at save.
      options=ocp.CheckpointManagerOptions(
        preservation_policy=policy,
        # Only says that ranks are to be stored, so that a later start knows
        # them. With `max_to_keep` it would delete the newest checkpoint.
        best_fn=_rank,
        enable_async_checkpointing=True,
      ),
    )

  def latest(self) -> int:
    """Units done at the newest whole checkpoint, 0 without one."""
    return self._manager.latest_step() or 0

  def save(self, units: int, state: State, rank: float) -> None:
    """Saves in the background.

    Args:
      units: units of work done.
      state: the train state.
      rank: the greatest is kept; -1 for what is not up for selection.
    """
    self._manager.save(
      units, args=ocp.args.StandardSave(state), metrics={"rank": rank}
    )

  def restore(self, units: int, like: State) -> State:
    """The state after that many units, placed as the arrays of `like` are."""
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
    return self._manager.restore(units, args=ocp.args.StandardRestore(abstract))

  def wait(self) -> None:
    self._manager.wait_until_finished()

  def close(self) -> None:
    self._manager.close()


def restore_part(directory: pathlib.Path, units: int, like: State) -> State:
  """Those leaves of a checkpoint that `like` has; nothing is written.

  Args:
    directory: of the checkpoints.
    units: units of work done.
    like: dicts as the state's, of `jax.ShapeDtypeStruct` with a sharding. The
      devices that saved need not be there.
  """
  with ocp.PyTreeCheckpointer() as checkpointer:
    return checkpointer.restore(
      directory.absolute() / str(units) / "default",
      args=ocp.args.PyTreeRestore(
        item=like,
        restore_args=ocp.checkpoint_utils.construct_restore_args(like),
        partial_restore=True,
      ),
    )


def _rank(metrics: dict[str, float]) -> float:
  return metrics["rank"]
