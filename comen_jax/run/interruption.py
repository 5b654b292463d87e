"""The state within an epoch, saved when SIGTERM stops a run.

    interrupted/state/       the train state, by Orbax
    interrupted/about.json   the epoch, its steps so far and their metrics
    interrupted/sha256.json  checksums; written last

The next start goes on with the next step of that epoch. The metrics of the
steps that are done are kept, so that the means of the epoch are the same, to
the last bit, as those of a run that was never stopped.
"""

import pathlib
import shutil
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import orbax.checkpoint as ocp

from comen_jax.errors import UserError
from comen_jax.files import read_json, write_json
from comen_jax.process import agreement
from comen_jax.run import console, manifest

State = TypeVar("State")
History = list[dict[str, Any]]


class Begun(NamedTuple):
  """A part of an epoch.

  Attributes:
    unit: number of the unit of work; -1 if there is none.
    history: metrics of the steps that are done.
  """

  unit: int = -1
  history: tuple[dict[str, float], ...] = ()


class Interruption:
  """The folder `interrupted/` of a run."""

  def __init__(self, run: pathlib.Path):
    self._folder = run / "interrupted"
    self._begun = Begun()

  def save(self, unit: int, state: State, history: History) -> None:
    """Saves the state after `len(history)` steps; it is on disk afterwards.

    Args:
      unit: number of the unit of work, an epoch.
      state: the train state.
      history: metrics of the epoch's steps so far, on devices or as floats.
    """
    if len(history) == len(self.history(unit)):
      return  # Nothing is new.
    values = [
      {name: float(value) for name, value in step.items()}
      for step in jax.device_get(history)
    ]
    self.remove()
    with ocp.StandardCheckpointer() as checkpointer:
      checkpointer.save(self._folder / "state", state)
    if jax.process_index() == 0:
      about = {"unit": unit, "step": int(state.step), "history": values}
      write_json(self._folder / "about.json", about)
      manifest.write(self._folder)

  def restore(self, unit: int, state: State) -> State:
    """Returns the state within unit `unit` if there is one, else `state`."""
    found = agreement.from_first(partial(_read, self._folder, unit))
    if found.get("ignored"):
      console.warn(f"{self._folder} is ignored: {found['ignored']}")
    if not found.get("history"):
      return state
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
    with ocp.StandardCheckpointer() as checkpointer:
      restored = checkpointer.restore(self._folder / "state", abstract)
    if int(restored.step) != int(state.step) + len(found["history"]):
      console.warn(f"{self._folder} is ignored: it belongs to another step")
      return state
    self._begun = Begun(unit, tuple(found["history"]))
    console.say(f"resuming after step {int(restored.step)}, within an epoch")
    return restored

  def history(self, unit: int) -> History:
    """Returns the metrics of the steps of this unit that are done."""
    return list(self._begun.history) if unit == self._begun.unit else []

  def unit_done(self, unit: int) -> None:
    """Removes what belongs to an earlier unit, whose checkpoint is on disk."""
    if unit != self._begun.unit:
      self.remove()

  def remove(self) -> None:
    """Removes what a later start would go on from."""
    self._begun = Begun()
    if jax.process_index() == 0:
      shutil.rmtree(self._folder, ignore_errors=True)


def _read(folder: pathlib.Path, unit: int) -> dict[str, Any]:
  """Returns about.json, or {"ignored": why}; {} if there is nothing."""
  if not folder.exists():
    return {}
  try:
    manifest.verify(folder)
    about = read_json(folder / "about.json")
  except (manifest.DamagedError, UserError, OSError) as e:
    return {"ignored": f"it is damaged ({e})"}
  if about["unit"] < unit:
    return {}  # The epoch is done; the run was killed before it was removed.
  if about["unit"] > unit:
    return {"ignored": "the checkpoint that it goes on from is gone"}
  return about
