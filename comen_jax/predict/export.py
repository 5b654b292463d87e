"""Exports a trained network as one file that needs jax, but no comen_jax."""

import json
import pathlib
from collections.abc import Callable

import jax
import jax.export
import numpy as np

from comen_jax.errors import UserError
from comen_jax.files import write_bytes, write_text
from comen_jax.predict.trained import Trained
from comen_jax.train_state import TrainState

PLATFORMS = ("cpu", "cuda", "tpu")


def check_place(path: str) -> pathlib.Path:
  """Checks where the file goes, before anything takes long."""
  place = pathlib.Path(path).expanduser()
  if place.is_dir():
    raise UserError(f"--export {path} is a folder: give the name of a file")
  if not place.parent.is_dir():
    raise UserError(f"--export {path}: there is no folder {place.parent}")
  return place


def export(trained: Trained, place: pathlib.Path) -> pathlib.Path:
  """Writes the exported network, and a description to `<place>.json`.

  The network maps uint8 [b, S, S, 3], any b, to a dict of probabilities [b, K]
  and, with SDNorm, domain_probabilities [b, M]. The evaluation view and the
  weights are inside.

  Returns:
    The path of the description: class names, S, M and the run's `measured`.
  """
  artefact = serialise(trained)
  about = {
    "class_names": trained.class_names,
    "size": trained.size,
    "num_domains": trained.num_domains,
    "platforms": PLATFORMS,
    "jax": jax.__version__,
    "run": trained.measured,
  }
  beside = place.with_name(f"{place.name}.json")
  try:
    # The network comes last: wherever it is, its description is too.
    write_text(beside, json.dumps(about, indent=2) + "\n")
    write_bytes(place, artefact)
  except OSError as e:
    raise UserError(f"{place} cannot be written: {e.strerror}") from e
  return beside


def serialise(trained: Trained) -> bytearray:
  """Returns the bytes of the exported network."""
  # As numpy: the file must not name a device or mesh of this machine.
  state = jax.device_get(trained.state)
  function = trained.function()

  def closed(images: jax.Array) -> dict[str, jax.Array]:
    # Without the barrier, the compiler would fold the weights: that is slow
    # and gives other probabilities.
    return function(jax.lax.optimization_barrier(state), images)

  return lower(closed, trained.size).serialize()


def lower(
  function: Callable, size: int, *state: TrainState
) -> jax.export.Exported:
  """Lowers `function` for every platform; the batch size stays free.

  Args:
    function: a function of (*state, images).
    size: side S of the images, uint8 [b, S, S, 3].
    state: shapes of the weights, if they are arguments of `function`.
  """
  (batch,) = jax.export.symbolic_shape("b")
  images = jax.ShapeDtypeStruct((batch, size, size, 3), np.uint8)
  return jax.export.export(jax.jit(function), platforms=PLATFORMS)(
    *state, images
  )
