"""What a method is: a tuple of stages. `train.py` knows these and no method."""

from collections.abc import Callable, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from comen_jax.data.batches import Batch
from comen_jax.data.sources import Sources
from comen_jax.data.views import Views
from comen_jax.errors import UserError
from comen_jax.methods.options import used_blocks
from comen_jax.nn.backbone import Backbone, Outputs
from comen_jax.steps import Diagnose, FeatureStep, Loss
from comen_jax.train_state import TrainState


class Latent(NamedTuple):
  """Discovered domains of source images, to be compared with the true ones."""

  rows: np.ndarray  # int [N], rows of the data set
  probs: np.ndarray  # float [N, M]


class Report(NamedTuple):
  """What a `prepare` found.

  Attributes:
    metrics: scalars for the log.
    latent: discovered domains, if there are any.
    warnings: lines for the user.
  """

  metrics: dict[str, float]
  latent: Latent | None = None
  warnings: tuple[str, ...] = ()


class Prepare(Protocol):
  """Work that a stage does on the host before its first epoch, or before each.

  It may pass over the source images with `feature_step`.
  """

  def __call__(
    self,
    state: TrainState,
    sources: Sources,
    feature_step: FeatureStep,
    key: jax.Array,
  ) -> tuple[TrainState, Report]: ...


class Forward(Protocol):
  """Runs the network in training mode; `steps.forward` is the plain one.

  A method gives another one to a loss that shall see changed images or maps.
  """

  def __call__(
    self,
    model: Backbone,
    state: TrainState,
    batch: Batch,
    key: jax.Array,
    domain_probs: jax.Array | None = None,
  ) -> tuple[Outputs, Any]: ...


class Stage(NamedTuple):
  """A part of training with its own loss.

  Attributes:
    name: name of the stage in logs.
    epochs: number of epochs.
    loss: the loss of a training step.
    prepare: work before the first epoch, or None.
    prepare_each_epoch: do that work before every epoch.
    frozen: paths of parameters that keep their value during the stage, such as
      "backbone/conv1".
    scales: factors of the updates by path of the parameters, such as
      {"backbone/head": 10.0}, for layers that learn faster or slower.
    diagnose: measures the last batch of every epoch, for the log only.
  """

  name: str
  epochs: int
  loss: Loss
  prepare: Prepare | None = None
  frozen: tuple[str, ...] = ()
  diagnose: Diagnose | None = None
  scales: Mapping[str, float] = MappingProxyType({})
  prepare_each_epoch: bool = False

  @property
  def factors(self) -> dict[str, float]:
    """Factors of the updates by path; those of frozen parameters are 0."""
    return {**self.scales, **dict.fromkeys(self.frozen, 0.0)}


class Method(NamedTuple):
  """A tuple of stages, and what they need beside the backbone.

  Attributes:
    stages: the stages, in order.
    init: (key, variables) -> (params, memory) that the method adds to the
      state. `variables` are the backbone's {"params", "batch_stats"} at the
      start of the run, pretrained weights included. To keep some of them, copy
      them with jnp.copy: a step reuses the memory of the backbone's own.
    describe: state -> arrays for `analysis.npz`.
    domain_labels: whether training reads true domains; results say so.
  """

  stages: tuple[Stage, ...]
  init: Callable[[jax.Array, dict[str, Any]], tuple[dict[str, Any], Any]]
  describe: Callable[[TrainState], dict[str, np.ndarray]]
  domain_labels: bool = False


class Task(NamedTuple):
  """What a method is built for.

  Attributes:
    model: the backbone.
    views: how stored images become inputs of the network, and back to pixels.
    norm: normalisation of the backbone, "none", "batch" or "sdnorm".
    num_classes: number of classes K.
    num_domains: number of latent domains M.
    num_sources: number of true source domains.
    num_rows: number of rows of the data set.
    image_size: height and width of the network's input.
    feature_dim: size of the feature vector D.
    epochs: number of epochs of the whole run.
    steps_per_epoch: number of training steps of an epoch.
    stage_shares: shares of the epochs for the stages of a method; the last one
      also says among how many epochs every method chooses.
    pretrained: whether the backbone starts from weights of a file, all but its
      head.
  """

  model: Backbone
  views: Views
  norm: str
  num_classes: int
  num_domains: int
  num_sources: int
  num_rows: int
  image_size: int
  feature_dim: int
  epochs: int
  steps_per_epoch: int
  stage_shares: tuple[float, ...]
  pretrained: bool = False


class Setup(NamedTuple):
  """What a config says beside a method's options, known before data are read.

  Attributes:
    method: name of the method.
    backbone: name of the backbone.
    points: names of its points, where a loss may reach into it.
    norm: normalisation of the backbone, "none", "batch" or "sdnorm".
    image_size: height and width of the network's input.
    epochs: number of epochs of the whole run.
    stage_shares: shares of the epochs for the stages of a method.
  """

  method: str
  backbone: str
  points: tuple[str, ...]
  norm: str
  image_size: int
  epochs: int
  stage_shares: tuple[float, ...]


def check_layers(options: Any, setup: Setup) -> None:
  """Raises UserError if `options.layers` names no map of the backbone."""
  maps = setup.points[:-1]  # The last are the features, which are no map.
  block = used_blocks(setup.method)[-1]  # A combination's is the second one.
  for name in options.layers:
    if name not in maps:
      raise UserError(
        f"{block}.layers={options.layers}: {setup.backbone} has no {name!r};"
        f" choose from {', '.join(maps)}"
      )


def split_epochs(epochs: int, shares: tuple[float, ...]) -> tuple[int, ...]:
  """Splits `epochs` by `shares`; the parts sum to `epochs`.

  A share above 0 gets at least one epoch. The last part takes what rounding
  leaves over.
  """
  parts = _parts(epochs, shares)
  if parts[-1] < 1:
    enough = next(n for n in count(epochs) if _parts(n, shares)[-1] >= 1)
    raise UserError(
      f"epochs={epochs} leaves no epoch for the last of the stages with"
      f" stage_shares={shares}: give more, such as {enough}"
    )
  return parts


def last_epochs(epochs: int, shares: tuple[float, ...]) -> int:
  """Number of epochs of the last part; 1 if the others leave none."""
  return max(1, _parts(epochs, shares)[-1])


def _parts(epochs: int, shares: tuple[float, ...]) -> tuple[int, ...]:
  if not shares or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
    raise UserError(
      f"stage_shares={shares}: give shares of the epochs that sum to 1, one"
      " for each stage"
    )
  if shares[-1] == 0:
    raise UserError(
      f"stage_shares={shares}: the last share is 0, but the epoch is chosen"
      " among those of the last stage; give it a share"
    )
  parts = [max(1, round(epochs * s)) if s else 0 for s in shares[:-1]]
  return *parts, epochs - sum(parts)
