"""Trains runs in this process, one after the other."""

import contextlib
import gc
import pathlib
import traceback

import jax
from ml_collections import ConfigDict

from comen_jax import train as training
from comen_jax.errors import BusyError, UserError
from comen_jax.files import write_text
from comen_jax.run import console
from comen_jax.sweep.tally import Outcome, Tally, place


def train(tally: Tally) -> None:
  """Trains the runs that are left."""
  for run in tally.left:
    console.say(f"\n{tally.begin(run)}")
    tally.end(run, train_one(run.config, place(tally.folder, run)))


def train_one(config: ConfigDict, folder: pathlib.Path) -> Outcome:
  """Trains one run; whatever fails in it is an outcome, not an exception.

  Of several processes, all meet a UserError alike. Any other exception may be
  of one process only, and the others would wait for it: it is raised.
  """
  try:
    training.train_and_evaluate(config, str(folder))
    outcome = Outcome("done")
  except BusyError:
    outcome = Outcome("busy")
  except Exception as e:
    if jax.process_count() > 1 and not isinstance(e, UserError):
      raise
    outcome = Outcome("failed", _reason(folder, e))
  # The jitted steps of a run hold its data; they would pile up.
  jax.clear_caches()
  gc.collect()
  return outcome


def _reason(folder: pathlib.Path, error: Exception) -> str:
  """Says in one line why a run failed; a traceback goes to its folder."""
  reason = str(error).strip().partition("\n")[0]
  if isinstance(error, UserError):
    return reason
  with contextlib.suppress(OSError):  # The disk may be what failed.
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "error.txt", "".join(traceback.format_exception(error)))
  return f"{type(error).__name__}: {reason} ({folder / 'error.txt'})"
