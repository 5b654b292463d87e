"""What a stage and a method are. `train.py` knows these and no method."""

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import numpy as np

from comen_jax.steps import Loss
from comen_jax.train_state import TrainState

# Pytree of bool like the parameters: False freezes.
Trainable = Callable[[Any], Any]


class Latent(NamedTuple):
  """Discovered domains of source images, for evaluation against true ones."""

  rows: np.ndarray  # int [N], rows of the data set
  probs: np.ndarray  # float [N, M]


class Report(NamedTuple):
  """What a `prepare` has to tell. `metrics` goes to the log as it is."""

  metrics: dict[str, float]
  latent: Latent | None = None
  warnings: tuple[str, ...] = ()


# (state, sources, feature_step, key) -> (state, report); once before the
# stage, on the host, may pass over the source images.
Prepare = Callable[..., tuple[TrainState, Report]]


def everything(params: Any) -> Any:
  """The mask that trains all parameters."""
  return jax.tree.map(lambda _: True, params)


def all_but(*path: str) -> Trainable:
  """The mask that freezes parameters whose path contains `path` in a row."""

  def mask(params: Any) -> Any:
    def trains(keys, _) -> bool:
      names = [k.key for k in keys]
      starts = range(len(names) - len(path) + 1)
      return not any(tuple(names[s : s + len(path)]) == path for s in starts)

    return jax.tree_util.tree_map_with_path(trains, params)

  return mask


class Stage(NamedTuple):
  """A part of training with a loss of its own."""

  name: str
  epochs: int
  loss: Loss
  prepare: Prepare | None = None
  trainable: Trainable = everything


class Method(NamedTuple):
  """A tuple of stages, and what they need beside the backbone.

  Attributes:
    stages: in order.
    init: key -> (params, memory) that the method adds to the state.
    describe: state -> arrays for `analysis.npz`.
    domain_labels: whether it looks at true domains; results are marked so.
  """

  stages: tuple[Stage, ...]
  init: Callable[[jax.Array], tuple[dict[str, Any], Any]]
  describe: Callable[[TrainState], dict[str, np.ndarray]]
  domain_labels: bool = False


class Task(NamedTuple):
  """What a method is built for.

  Attributes:
    model: the backbone.
    norm: "none", "batch" or "sdnorm", the backbone's normalisation.
    num_classes: K.
    num_domains: M, latent domains.
    num_sources: domains that the source images really come from.
    num_rows: rows of the data set.
    feature_dim: D.
    stage_epochs: epochs of warm-up, discover and encode. A method with other
      stages shares out their sum.
  """

  model: nn.Module
  norm: str
  num_classes: int
  num_domains: int
  num_sources: int
  num_rows: int
  feature_dim: int
  stage_epochs: tuple[int, int, int]


def split_epochs(epochs: int, shares: tuple[float, ...]) -> tuple[int, ...]:
  """Shares of `epochs`, each non-zero share at least one; they sum to `epochs`.

  What rounding leaves goes to the last share, which is not 0.
  """
  parts = [max(1, round(epochs * share)) if share else 0 for share in shares]
  parts[-1] = epochs - sum(parts[:-1])
  if parts[-1] < 1:
    raise ValueError(f"{epochs} epochs are too few for stage shares {shares}")
  return tuple(parts)
