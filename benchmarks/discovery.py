"""What is done once per run or report: clustering, pretraining F_d, t-SNE."""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from benchmarks import made
from benchmarks.alternate import How, Worker, alternate
from benchmarks.tables import Table
from benchmarks.worker import Contestant
from comen_jax.methods.comen import clustering, discovery
from comen_jax.nn.style import DomainPredictor
from comen_jax.report.plots import tsne

# Images whose style is clustered: comen.portion = .3 of the training images of
# three sources (of PACS, all but sketch).
PORTIONS = {"Digits-DG": 4320, "PACS": 1640}
_STYLE = 128  # Mean and std of 64 channels.
_FEATURES = {"digits": 256, "ResNet-18": 512}
_PRETRAIN_STEPS = 1000
_MOST_ROUNDS = 3


def measure(how: How) -> list[Table]:
  """Measures each piece of work as a whole, compilation included."""
  how = how._replace(rounds=min(how.rounds, _MOST_ROUNDS))
  names = [
    *(f"{what}/{p}" for what in ("gmm", "kmeans", "F_d") for p in PORTIONS),
    *(f"t-SNE/{f}" for f in _FEATURES),
  ]
  with Worker("benchmarks.discovery") as worker:
    facts = {name: worker.prepare(name) for name in names}
    times = alternate({n: partial(worker.run, n) for n in names}, how)
  rows = [
    {
      "work": name,
      **facts[name],
      "seconds": times.median(name),
      "seconds of rounds": times.seconds[name],
    }
    for name in names
  ]
  title = f"once per run (F_d: {_PRETRAIN_STEPS} steps) or report (t-SNE)"
  return [Table(title, rows)]


def prepare(name: str) -> Contestant:
  """Makes a piece of work such as `gmm/PACS`; a step is the whole work."""
  what, size = name.split("/")
  if what == "t-SNE":
    arrays = _analysis(_FEATURES[size])
    facts = {"points": tsne.MAX_POINTS, "width": _FEATURES[size]}
    return Contestant(_times(partial(tsne.embed, "", arrays)), facts)
  style, labels = _style(PORTIONS[size])
  facts = {"points": len(style), "width": _STYLE}
  if what != "F_d":
    every = np.arange(len(style))
    work = partial(clustering.cluster, style, every, made.NUM_DOMAINS, what, 0)
    return Contestant(_times(work), facts)
  work = partial(
    discovery._fit,
    DomainPredictor(made.NUM_DOMAINS),
    style,
    labels,
    jax.random.key(0),
    discovery.Pretraining("", 1.0, _PRETRAIN_STEPS),
  )
  return Contestant(_times(work), facts)


def _times(work: Callable[[], object]) -> Callable[[int], None]:
  def run(steps: int) -> None:
    for _ in range(steps):
      work()

  return run


def _style(count: int) -> tuple[np.ndarray, np.ndarray]:
  """Makes standardised style [count, 128] of three overlapping domains."""
  rng = np.random.default_rng(0)
  labels = (np.arange(count) % made.NUM_DOMAINS).astype(np.int32)
  # A few directions hold most of the variance, as in real style.
  mix = rng.normal(size=(_STYLE, _STYLE)) * 0.8 ** np.arange(_STYLE)[:, None]
  centers = rng.normal(size=(made.NUM_DOMAINS, _STYLE))
  style = (rng.normal(size=(count, _STYLE)) + centers[labels]) @ mix
  return (style - style.mean(0)) / style.std(0), labels


def _analysis(width: int) -> dict[str, np.ndarray]:
  """Makes the arrays of an analysis.npz with ten classes and a target."""
  rng = np.random.default_rng(0)
  numbers = np.arange(2 * tsne.MAX_POINTS)
  centers = rng.normal(size=(10, width))
  noise = rng.normal(size=(len(numbers), width))
  return {
    "features": np.maximum(centers[numbers % 10] + noise, 0),
    "class": numbers % 10,
    "domain": numbers % 2,
    "domain_names": np.array(["source", "target"]),
    "target": np.array("target"),
    "class_names": np.array(list("0123456789")),
  }
