"""Loads the chosen network of a finished run from the run's folder alone."""

import pathlib
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from comen_jax import steps
from comen_jax.data.views import Views
from comen_jax.errors import UserError
from comen_jax.experiment import network
from comen_jax.files import read_json, read_jsonl
from comen_jax.nn.backbone import Backbone
from comen_jax.nn.registry import shapes
from comen_jax.run import selection
from comen_jax.run.checkpointing import check, restore_part
from comen_jax.train_state import TrainState


class Trained(NamedTuple):
  """A trained network and what is needed to use it.

  Attributes:
    model: the backbone.
    views: how decoded images become inputs of the network.
    state: parameters and running statistics, without memory and optimiser.
    class_names: names of the classes.
    size: side S of the squares that images are decoded to.
    measured: the `measured` part of result.json.
  """

  model: Backbone
  views: Views
  state: TrainState
  class_names: tuple[str, ...]
  size: int
  measured: dict[str, Any]

  @property
  def num_domains(self) -> int:
    """Number of latent domains, 0 without SDNorm."""
    return self.model.num_domains if self.model.norm == "sdnorm" else 0

  def function(self) -> Callable[..., dict[str, jax.Array]]:
    """`probabilities` as a function of (state, images)."""
    return partial(probabilities, model=self.model, views=self.views)


def probabilities(
  state: TrainState, images: jax.Array, *, model: Backbone, views: Views
) -> dict[str, jax.Array]:
  """uint8 [B, S, S, 3] -> probabilities [B, K], domain_probabilities [B, M].

  Images get the evaluation view. Without SDNorm there are no domains.
  """
  outputs = steps.predict(model, state, views.evaluate(images))
  found = {"probabilities": jax.nn.softmax(outputs.logits)}
  if outputs.domain_logits is not None:
    found["domain_probabilities"] = jax.nn.softmax(
      outputs.domain_logits / model.test_temperature
    )
  return found


def load(path: str, sharding: jax.sharding.Sharding) -> Trained:
  """Loads the network that source validation chose.

  This needs neither the data set nor pretrained weights, and writes nothing.

  Args:
    path: folder of the run.
    sharding: sharding of the weights; the devices of training do not matter.
  """
  run = pathlib.Path(path).expanduser().absolute()
  _check(path, run)
  try:
    config = ConfigDict(read_json(run / "config.json"))
    result = read_json(run / "result.json")
    records = read_jsonl(run / "metrics.jsonl")
    units = selection.best(records)["unit"] + 1
    with np.load(run / "analysis.npz") as arrays:
      class_names = tuple(map(str, arrays["class_names"]))
    model, views = network(config, len(class_names))
    size, measured = config.store_size, result["measured"]
    _, variables = shapes(model, config.image_size)
  except (
    OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile
  ) as e:  # fmt: skip
    reason = " ".join(str(e).split())
    raise UserError(
      f"{path} is damaged, or was made by another version of comen_jax:"
      f" {reason}"
    ) from e
  return Trained(
    model=model,
    views=views,
    state=_restore(path, run / "checkpoints", units, variables, sharding),
    class_names=class_names,
    size=size,
    measured=measured,
  )


def _check(path: str, run: pathlib.Path) -> None:
  if not run.is_dir():
    raise UserError(
      f"{path}: there is no such folder; give the folder of a run"
    )
  if not (run / "config.json").exists():
    raise UserError(
      f"{path} is not a run: it has no config.json; give the --workdir of a"
      " finished training"
    )
  if not (run / "result.json").exists():
    raise UserError(
      f"{path} is not finished, so no epoch is chosen yet: give its training"
      " command again, which resumes it"
    )


def _restore(
  path: str,
  checkpoints: pathlib.Path,
  units: int,
  variables: dict[str, Any],
  sharding: jax.sharding.Sharding,
) -> TrainState:
  if not (checkpoints / str(units)).is_dir():
    raise UserError(
      f"{path} has no checkpoints/{units}, the chosen epoch: put it back"
    )
  warn = lambda text: print(f"WARNING: {text}", file=sys.stderr)
  check(checkpoints / str(units), warn)
  like = {"params": {"backbone": variables["params"]}}
  if "batch_stats" in variables:  # A network without norms has none.
    like["batch_stats"] = variables["batch_stats"]
  place = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)
  like = jax.tree.map(place, like)
  found = restore_part(checkpoints, units, like)
  return TrainState(
    params=found["params"],
    batch_stats=found.get("batch_stats", {}),
    memory=(),
    opt_state=(),
    step=(),
  )
