"""A trained network as one file that needs jax and nothing of ours."""

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
  """Where the artefact goes; before anything takes long."""
  place = pathlib.Path(path).expanduser()
  if place.is_dir():
    raise UserError(f"--export {path} is a folder: give a file's name")
  if not place.parent.is_dir():
    raise UserError(f"--export {path}: there is no folder {place.parent}")
  return place


def export(trained: Trained, place: pathlib.Path) -> pathlib.Path:
  """Writes the artefact, and what it cannot say to `<place>.json` beside it.

  The artefact maps uint8 [b, S, S, 3], any b, to a dict of
  probabilities [b, K] and, with SDNorm, domain_probabilities [b, M]. View and
  weights are inside.

  Returns:
    The place of the second file: class names, S, M, the run's measurements.
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
    # The artefact last: where it is, its names are.
    write_text(beside, json.dumps(about, indent=2) + "\n")
    write_bytes(place, artefact)
  except OSError as e:
    raise UserError(f"{place} cannot be written: {e.strerror}") from e
  return beside


def serialise(trained: Trained) -> bytearray:
  """The artefact's bytes."""
  # As numpy, so that no device and no mesh of this machine is written down.
  state = jax.device_get(trained.state)
  function = trained.function()

  def closed(images: jax.Array) -> dict[str, jax.Array]:
    # Without the barrier, weights are rounded to bfloat16 or laid out anew when
    # the artefact is compiled: slowly, and to other probabilities.
    return function(jax.lax.optimization_barrier(state), images)

  return lower(closed, trained.size).serialize()


def lower(
  function: Callable, size: int, *state: TrainState
) -> jax.export.Exported:
  """For every platform, whichever there is here; the batch size is free.

  Args:
    function: of (*state, images).
    size: S of images, uint8 [b, S, S, 3].
    state: shapes, where weights are not to be inside.
  """
  (batch,) = jax.export.symbolic_shape("b")
  images = jax.ShapeDtypeStruct((batch, size, size, 3), np.uint8)
  return jax.export.export(jax.jit(function), platforms=PLATFORMS)(
    *state, images
  )
