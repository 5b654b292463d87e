"""Orbax checkpoints, numbered by the units of work that are done.

A unit is one `prepare` or one epoch. The step number would not do: the states
before and after a `prepare` have the same step.
"""

import pathlib
from typing import TypeVar

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy

State = TypeVar("State")


class Checkpoints:
  """Keeps the newest two checkpoints and the best one; saves in background."""

  def __init__(self, directory: pathlib.Path):
    policy = preservation_policy.AnyPreservationPolicy(
      [
        preservation_policy.LatestN(2),
        preservation_policy.BestN(get_metric_fn=_rank, n=1),
      ]
    )
    self._manager = _Manager(
      directory.absolute(),  # A relative path fails at save.
      options=ocp.CheckpointManagerOptions(
        preservation_policy=policy,
        # This only stores the ranks, so that a later start knows them. With
        # `max_to_keep` it would delete the newest checkpoint.
        best_fn=_rank,
        enable_async_checkpointing=True,
      ),
    )

  def latest(self) -> int:
    """Units done at the newest complete checkpoint; 0 if there is none."""
    return self._manager.latest_step() or 0

  def save(self, units: int, state: State, rank: float) -> None:
    """Saves a checkpoint in the background.

    Args:
      units: number of units of work done.
      state: the train state.
      rank: rank of the checkpoint, the greatest is kept; -1 if this epoch
        cannot be chosen.
    """
    self._manager.save(
      units, args=ocp.args.StandardSave(state), metrics={"rank": rank}
    )

  def restore(self, units: int, like: State) -> State:
    """Restores the state after `units` units, sharded like `like`."""
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
    return self._manager.restore(units, args=ocp.args.StandardRestore(abstract))

  def wait(self) -> None:
    """Waits until the last checkpoint is on disk."""
    self._manager.wait_until_finished()

  def close(self) -> None:
    """Waits, then frees what Orbax holds."""
    self._manager.close()


def restore_part(directory: pathlib.Path, units: int, like: State) -> State:
  """Restores the leaves of a checkpoint that `like` has; writes nothing.

  Args:
    directory: folder of the checkpoints.
    units: number of units of work done.
    like: nested dicts like the state, with `jax.ShapeDtypeStruct` leaves that
      have a sharding. The devices that saved the checkpoint may be absent.
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


class _Manager(ocp.CheckpointManager):
  """Leaves jax's preemption service alone.

  Orbax asks the service with its own numbers. A stop would then be agreed upon
  for such a number, and `stopping.check`, which counts in another way, would
  never hear of it: SIGTERM to several processes would be lost.
  """

  def reached_preemption(self, step: int) -> bool:
    return False


def _rank(metrics: dict[str, float]) -> float:
  return metrics["rank"]
