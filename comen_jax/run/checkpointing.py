"""Orbax checkpoints, numbered by the units of work that are done.

A unit is one `prepare` or one epoch. The step number would not do: the states
before and after a `prepare` have the same step.

Process 0 writes the checksums of a checkpoint after its commit, verifies them
before a restore and tells the other processes which checkpoint to use.
"""

import contextlib
import math
import pathlib
import shutil
from collections.abc import Callable
from concurrent import futures
from functools import partial
from typing import TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from orbax.checkpoint.checkpoint_managers import preservation_policy

from comen_jax.errors import Stopped, UserError
from comen_jax.process import agreement
from comen_jax.run import console, manifest, recovery

State = TypeVar("State")

# Orbax's own limit, 20 minutes, would be how long the other processes wait for
# one that could not write.
_TIMEOUT_SECONDS = 120
_MIB = 1024**2


class Checkpoints:
  """Keeps the newest two checkpoints and the best one; saves in background.

  As a context it waits for the last save, unless the body ends in a bug.
  """

  def __init__(self, directory: pathlib.Path):
    """Opens the folder; takes out what is damaged (`recovery.screen`)."""
    self._directory = directory.absolute()  # A relative path fails at save.
    # Before Orbax reads anything: it stumbles over damaged files.
    agreement.from_first(partial(recovery.screen, self._directory))
    policy = preservation_policy.AnyPreservationPolicy(
      [
        preservation_policy.LatestN(2),
        preservation_policy.BestN(get_metric_fn=_rank, n=1),
      ]
    )
    self._manager = _Manager(
      self._directory,
      options=ocp.CheckpointManagerOptions(
        preservation_policy=policy,
        # This only stores the ranks, so that a later start knows them. With
        # `max_to_keep` it would delete the newest checkpoint.
        best_fn=_rank,
        enable_async_checkpointing=True,
        async_options=ocp.AsyncOptions(timeout_secs=_TIMEOUT_SECONDS),
        # What a killed run or a full disk left behind.
        cleanup_tmp_directories=True,
      ),
    )
    self._thread = futures.ThreadPoolExecutor(1, "checksums")
    self._sealed: futures.Future[None] | None = None

  def __enter__(self) -> "Checkpoints":
    return self

  def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
    if kind is None:
      self.wait()
    elif issubclass(kind, UserError | KeyboardInterrupt | Stopped):
      # The body's error is the one to report.
      with contextlib.suppress(Exception):
        self.wait()

  def latest(self, before: float = math.inf) -> int:
    """Units done at the newest complete checkpoint; 0 if there is none.

    Args:
      before: only checkpoints of fewer units count.
    """
    steps = (n for n in self._manager.all_steps() if n < before)
    return agreement.from_first(partial(max, steps, default=0))

  def save(self, units: int, state: State, rank: float) -> None:
    """Saves a checkpoint in the background.

    Args:
      units: number of units of work done.
      state: the train state.
      rank: rank of the checkpoint, the greatest is kept; -1 if this epoch
        cannot be chosen.
    """
    self.wait()
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    agreement.from_first(partial(_check_room, self._directory, needed))
    self._manager.save(
      units, args=ocp.args.StandardSave(state), metrics={"rank": rank}
    )
    if jax.process_index() == 0:
      self._sealed = self._thread.submit(self._seal, units)

  def resume(self, like: State) -> tuple[int, State]:
    """Restores the newest checkpoint -> (units done, state).

    Whatever a restore raises, the checkpoint is taken to be damaged, and all
    processes use the one before. Without checkpoints it returns (0, like).
    """
    damaged: dict[int, str] = {}
    units = newest = self.latest()
    while units:
      error = None
      try:
        state = self._restore(units, like)
      except Exception as e:
        error = e
      if _on_all(error is None):
        break
      reason = error or "another process could not read it"
      damaged[units] = " ".join(str(reason).split())[:200]
      units = self.latest(before=units)
    if damaged:
      left = {*damaged, units} - {0}
      put = partial(recovery.put_aside, self._directory, damaged, left)
      agreement.from_first(put)
      self._manager.reload()
    return (units, state) if newest else (0, like)

  def restore(self, units: int, like: State) -> State:
    """Restores the state after `units` units, sharded like `like`.

    It is verified first; UserError if it is damaged.
    """
    folder = self._directory / str(units)
    agreement.from_first(partial(check, folder, console.warn))
    try:
      return self._restore(units, like)
    except Exception as e:
      raise _lost(folder, e) from e

  def _restore(self, units: int, like: State) -> State:
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
    return self._manager.restore(units, args=ocp.args.StandardRestore(abstract))

  def wait(self) -> None:
    """Waits until the last checkpoint and its checksums are on disk."""
    self._manager.wait_until_finished()
    if self._sealed:
      self._sealed.result()

  def close(self) -> None:
    """Waits, then frees what Orbax holds."""
    self.wait()
    self._thread.shutdown()
    self._manager.close()

  def _seal(self, units: int) -> None:
    """Writes the checksums as soon as the checkpoint is committed.

    Not in Orbax's `post_finalization_callback`, which is called before the
    rename that commits.
    """
    self._manager.wait_until_finished()
    manifest.write(self._directory / str(units))


def check(folder: pathlib.Path, warn: Callable[[str], None]) -> None:
  """Verifies the checkpoint of a chosen epoch; UserError if it is damaged.

  Args:
    folder: folder of the checkpoint.
    warn: is called if it has no checksums, as those of older versions.
  """
  try:
    if not folder.is_dir():
      raise manifest.DamagedError("it is missing")
    manifest.verify(folder)
  except manifest.UnsealedError:
    warn(f"{folder} has no checksums: it is used without a check")
  except manifest.DamagedError as e:
    raise _lost(folder, e) from e


def restore_part(directory: pathlib.Path, units: int, like: State) -> State:
  """Restores the leaves of a checkpoint that `like` has; writes nothing.

  Args:
    directory: folder of the checkpoints.
    units: number of units of work done.
    like: nested dicts like the state, with `jax.ShapeDtypeStruct` leaves that
      have a sharding. The devices that saved the checkpoint may be absent.
  """
  folder = directory.absolute() / str(units)
  try:
    with ocp.PyTreeCheckpointer() as checkpointer:
      return checkpointer.restore(
        folder / "default",
        args=ocp.args.PyTreeRestore(
          item=like,
          restore_args=ocp.checkpoint_utils.construct_restore_args(like),
          partial_restore=True,
        ),
      )
  except Exception as e:
    raise _lost(folder, e) from e


def _lost(folder: pathlib.Path, reason: Exception) -> UserError:
  text = " ".join(str(reason).split())[:200]
  return UserError(
    f"{folder}, the checkpoint of the chosen epoch, is damaged ({text}): put"
    " back a copy, or train again in another --workdir"
  )


def _check_room(directory: pathlib.Path, needed: int) -> None:
  """Raises UserError if a save would fill the disk; a quota is not seen."""
  free = shutil.disk_usage(directory).free
  needed += needed // 10 + _MIB  # For the descriptions of the arrays.
  if free < needed:
    raise UserError(
      f"the disk of {directory} is full ({free / _MIB:.1f} MiB free, a"
      f" checkpoint needs {needed / _MIB:.1f}): make room, then the same"
      " command goes on from the last good checkpoint"
    )


class _Manager(ocp.CheckpointManager):
  """Leaves jax's preemption service alone.

  Orbax asks the service with its own numbers. A stop would then be agreed upon
  for such a number, and `stopping.check`, which counts in another way, would
  never hear of it: SIGTERM to several processes would be lost.
  """

  def reached_preemption(self, step: int) -> bool:
    return False


def _on_all(good: bool) -> bool:
  """Whether something is good on all processes."""
  if jax.process_count() == 1:
    return good
  return bool(multihost_utils.process_allgather(np.array(good)).all())


def _rank(metrics: dict[str, float]) -> float:
  return metrics["rank"]
