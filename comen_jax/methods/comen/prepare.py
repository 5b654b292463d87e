"""What COMEN does before its stages: find domains, start prototypes."""

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax import prototypes, steps
from comen_jax.data.sources import Sources
from comen_jax.methods.base import Latent, Prepare, Report
from comen_jax.methods.comen import discovery
from comen_jax.methods.comen.losses import Memory
from comen_jax.methods.comen.options import Options
from comen_jax.methods.domain_labels import by_row
from comen_jax.metrics import probabilities
from comen_jax.nn.backbone import STYLE_COPY, Outputs
from comen_jax.nn.style import DomainPredictor
from comen_jax.steps import FeatureStep
from comen_jax.train_state import TrainState, forget_momentum

PREDICTOR = "domain_predictor"  # Name of F_d inside the backbone.
_LEAST_AGREEMENT = 0.9


class Label(Protocol):
  """Gives all source images their domain -> probabilities [N, M]."""

  def __call__(
    self, sources: Sources, outputs: Outputs, key: jax.Array
  ) -> np.ndarray: ...


def prepare_discover(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
  *,
  predictor: DomainPredictor,
  style_layer: str,
  options: Options,
) -> tuple[TrainState, Report]:
  """Pretrains F_d on clusters of style; see `discovery`.

  From here on, with `style_from="copy"`, the copy of the first convolution is
  what that layer is now. The memory has the cluster of every source image; if
  it had domains before, the clusters are numbered like them.
  """
  if options.style_from == "copy":
    # A copy: a step reuses the memory of the layer itself.
    layer = jax.tree.map(jnp.copy, state.params["backbone"][style_layer])
    state = state.replace(batch_stats={**state.batch_stats, STYLE_COPY: layer})
  found = discovery.pretrain_predictor(
    state,
    sources,
    feature_step,
    key,
    predictor=predictor,
    how=discovery.Pretraining(
      clustering=options.clustering,
      portion=options.portion,
      num_steps=options.pretrain_steps,
      num_views=(
        options.pretrain_views if options.style_view == "training" else 0
      ),
      noise=options.pretrain_noise,
      true_domains=options.true_domains,
    ),
    before=np.asarray(state.memory.domains)[sources.rows],
  )
  backbone = {**state.params["backbone"], PREDICTOR: found.params}
  statistics = {"mean": found.mean, "std": found.std}
  state = state.replace(
    params={**state.params, "backbone": backbone},
    batch_stats={**state.batch_stats, PREDICTOR: statistics},
  )
  state = forget_momentum(state, (f"backbone/{PREDICTOR}",))
  warnings = found.warnings
  if found.agreement < _LEAST_AGREEMENT:
    warnings += (
      f"F_d agrees with the clustering on only {found.agreement:.0%} of the"
      " held-out images: raise comen.pretrain_steps or try another clustering",
    )
  return _remember(state, sources, found.labels), Report(
    {"pretrain_agreement": found.agreement},
    Latent(sources.rows, found.probs),
    warnings,
  )


def prepare_encode(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
  *,
  label: Label,
  discover: Prepare | None = None,
) -> tuple[TrainState, Report]:
  """Fixes the domain of every source image and starts the prototypes.

  Prototypes are means over the training images (Eq. 6). Validation images get
  a domain too, for the log, but nothing is learned from them.

  Args:
    state: the state after discover.
    sources: the source images.
    feature_step: the jitted feature step.
    key: random key of this stage.
    label: gives the images their domain.
    discover: finds the domains again if one of them has become empty.
  """
  outputs = _source_outputs(state, sources, feature_step, key)
  metrics, warnings = {}, ()
  latent = probs = label(sources, outputs, key)
  if discover:
    latent = predicted_domains(sources, outputs, key)
    found = latent.argmax(axis=1)
    sizes = np.bincount(found, minlength=latent.shape[1])
    empty = sizes < discovery.LEAST_SHARE * len(found)
    if empty.any():
      state = _remember(restart_branches(state, empty), sources, found)
      state, report = discover(state, sources, feature_step, key)
      warnings = (
        f"latent domain {sizes.argmin()} had become empty ({sizes.min()} of"
        f" {len(found)} images): domains were found again from the data",
        *report.warnings,
      )
      outputs = _source_outputs(state, sources, feature_step, key)
      probs = label(sources, outputs, key)
      latent = predicted_domains(sources, outputs, key)
    clusters = np.asarray(state.memory.domains)[sources.rows]
    metrics["clustering_agreement"] = float(
      (latent.argmax(axis=1) == clusters).mean()
    )
  domains = by_row(
    len(state.memory.domains), sources.rows, probs.argmax(axis=1)
  )
  learn = np.isin(sources.rows, sources.train_rows)
  num_domains, num_classes, _ = state.memory.prototypes.values.shape
  rows = sources.rows[learn]
  memory = Memory(
    prototypes.from_features(
      outputs.features[learn],
      sources.labels(rows),
      domains[rows],
      num_domains,
      num_classes,
    ),
    jnp.asarray(domains),
  )
  metrics["prototypes_seen"] = float(memory.prototypes.seen.sum())
  report = Report(metrics, Latent(sources.rows, latent), warnings)
  return state.replace(memory=memory), report


def restart_branches(state: TrainState, empty: np.ndarray) -> TrainState:
  """Sets SDNorm's branches of empty domains to the mean of the other branches.

  Nothing was normalised with them for a while, so their statistics are old.

  Args:
    state: the state.
    empty: bool [M], which domains are empty.
  """

  def restart(keys, value: jax.Array) -> jax.Array | np.ndarray:
    name = getattr(keys[-1], "key", "")
    if name not in ("scale", "bias", "mean", "var") or value.ndim != 2:
      return value
    branches = np.array(value)
    branches[empty] = branches[~empty].mean(axis=0)
    return branches

  both = state.params["backbone"], state.batch_stats
  backbone, stats = jax.tree_util.tree_map_with_path(restart, both)
  return state.replace(
    params={**state.params, "backbone": backbone}, batch_stats=stats
  )


def _remember(
  state: TrainState, sources: Sources, labels: np.ndarray
) -> TrainState:
  """Stores the domain of every source row."""
  domains = by_row(len(state.memory.domains), sources.rows, labels)
  memory = state.memory.replace(domains=jnp.asarray(domains))
  return state.replace(memory=memory)


def predicted_domains(
  sources: Sources, outputs: Outputs, key: jax.Array
) -> np.ndarray:
  """Probabilities of F_d [N, M]."""
  return probabilities(outputs.domain_logits)


def random_domains(
  sources: Sources, outputs: Outputs, key: jax.Array, *, num_domains: int
) -> np.ndarray:
  """Uniform random domains, one-hot [N, M]: the paper's rows without SDNorm."""
  count = len(outputs.logits)
  drawn = np.asarray(jax.random.randint(key, (count,), 0, num_domains))
  return np.eye(num_domains)[drawn]


def true_domains(
  sources: Sources, outputs: Outputs, key: jax.Array, *, num_domains: int
) -> np.ndarray:
  """True domains, one-hot [N, M]: what a perfect discovery would give."""
  return np.eye(num_domains)[sources.true_domains(sources.rows)]


def _source_outputs(
  state: TrainState,
  sources: Sources,
  feature_step: FeatureStep,
  key: jax.Array,
) -> Outputs:
  """Outputs of the backbone for all source rows, on the evaluation view."""
  rows = sources.rows
  step = lambda batch: feature_step(state, batch, key, False)
  return steps.map_rows(step, sources.batches(rows), len(rows))
