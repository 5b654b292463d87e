"""Features in two dimensions (t-SNE), by class and by source or target."""

from typing import NamedTuple

import numpy as np
import threadpoolctl
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from comen_jax.report.plots.theme import LIGHT, Theme

MAX_POINTS = 1000  # Half of them target. More take long and hide each other.
MAX_COLOURS = len(LIGHT.classes)
_SEED = 0


class Points(NamedTuple):
  """Features of a method, as points.

  Attributes:
    title: name of the method.
    places: coordinates [n, 2].
    classes: class of each point [n].
    is_target: whether each point is of the target [n].
    class_names: names of the classes [K].
  """

  title: str
  places: np.ndarray
  classes: np.ndarray
  is_target: np.ndarray
  class_names: np.ndarray


def embed(title: str, arrays: dict[str, np.ndarray]) -> Points:
  """Places features of unit length by t-SNE; equal arrays give equal points.

  Args:
    title: name of the method.
    arrays: arrays of its analysis.npz.
  """
  # Only this function needs scikit-learn, which takes a second to import.
  from sklearn.manifold import TSNE

  target = list(arrays["domain_names"]).index(arrays["target"].item())
  is_target = arrays["domain"] == target
  half = MAX_POINTS // 2
  rows = np.concatenate([_spread(is_target, half), _spread(~is_target, half)])
  features = np.float64(arrays["features"][rows])
  length = np.linalg.norm(features, axis=1, keepdims=True)
  perplexity = min(30, (len(rows) - 1) / 3)
  tsne = TSNE(init="pca", perplexity=perplexity, random_state=_SEED, n_jobs=1)
  # For so few points, several threads are slower than one.
  with threadpoolctl.threadpool_limits(1):
    places = tsne.fit_transform(features / np.maximum(length, 1e-12))
  return Points(
    title,
    places,
    arrays["class"][rows],
    is_target[rows],
    arrays["class_names"],
  )


def figure(methods: list[Points], theme: Theme) -> Figure:
  """Draws a column per method: by class, then by source or target."""
  side_by_side = len(methods) > 1
  whole = theme.figure(8.0 if side_by_side else 4.2)
  parts = whole.subfigures(*((2, 1) if side_by_side else (1, 2)))
  _by_class(parts[0], methods, theme)
  _by_side(parts[1], methods, theme)
  return whole


def _by_class(part: SubFigure, methods: list[Points], theme: Theme) -> None:
  names = methods[0].class_names
  colours = theme.class_colours(len(names))
  for axes, points in zip(_panels(part, methods, "by class"), methods):
    # In random order, so that no class covers all others.
    order = np.random.default_rng(_SEED).permutation(len(points.places))
    axes.scatter(
      *points.places[order].T, s=7, linewidths=0,
      color=colours[points.classes[order]],
    )  # fmt: skip
  if len(names) <= len(theme.classes):
    _legend(part, names, colours)
  else:
    scale = ScalarMappable(Normalize(0, len(names) - 1), theme.many)
    bar = part.colorbar(
      scale, ax=part.axes, location="bottom", aspect=50, fraction=0.04
    )
    bar.set_ticks([0, len(names) - 1], labels=[names[0], names[-1]])
    for label, side in zip(bar.ax.get_xticklabels(), ("left", "right")):
      label.set_horizontalalignment(side)


def _by_side(part: SubFigure, methods: list[Points], theme: Theme) -> None:
  colours = theme.colours.muted, theme.methods[0]
  for axes, points in zip(_panels(part, methods, "source and target"), methods):
    for side, colour, alpha in zip((False, True), colours, (0.35, 0.8)):
      axes.scatter(
        *points.places[points.is_target == side].T, s=7, linewidths=0,
        color=colour, alpha=alpha,
      )  # fmt: skip
  _legend(part, ("source (validation images)", "target"), colours)


def _panels(part: SubFigure, methods: list[Points], about: str) -> list:
  panels = part.subplots(1, len(methods), squeeze=False)[0]
  for axes, points in zip(panels, methods):
    axes.set(xticks=[], yticks=[], title=f"{points.title}, {about}")
    axes.margins(0.03)
  return panels


def _legend(part: SubFigure, names, colours) -> None:
  dots = [
    Line2D([], [], color=colour, marker="o", linestyle="", markersize=5)
    for colour in colours
  ]
  # Widths in ems of 9 points: a dot and its margins, then letters.
  room = part.bbox.width / part.figure.dpi * 8
  columns = max(int(room / (2.8 + 0.65 * max(map(len, names)))), 1)
  lines = -(-len(names) // columns)
  part.legend(
    dots, names, loc="outside lower center",
    ncols=-(-len(names) // lines),
    columnspacing=1.0, handlelength=1.0, handletextpad=0.3,
  )  # fmt: skip


def _spread(chosen: np.ndarray, most: int) -> np.ndarray:
  """Returns up to `most` of the chosen rows, evenly spread over them."""
  rows = np.flatnonzero(chosen)
  return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int)]
