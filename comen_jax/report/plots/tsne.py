"""Features in two dimensions (t-SNE), by class and by source or target."""

from typing import NamedTuple

import numpy as np
import threadpoolctl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from comen_jax.report.plots.theme import LIGHT, WIDTH, Theme

MAX_POINTS = 1000  # Half of them target. More take long and hide each other.
MAX_COLOURS = len(LIGHT.classes)
_SEED = 0
_SOURCE = "o"
_TARGET = "^"  # The held-out target has a shape of its own.
_LEGEND = {
  "fontsize": 8.5, "columnspacing": 1.0, "handlelength": 1.0,
  "handletextpad": 0.3,
}  # fmt: skip


class Points(NamedTuple):
  """Features of a method, as points.

  Attributes:
    title: name of the method.
    places: coordinates [n, 2].
    classes: class of each point [n].
    is_target: whether each point is of the target [n].
    class_names: names of the classes [K].
    target: name of the target domain.
  """

  title: str
  places: np.ndarray
  classes: np.ndarray
  is_target: np.ndarray
  class_names: np.ndarray
  target: str


def embed(title: str, arrays: dict[str, np.ndarray]) -> Points:
  """Places features of unit length by t-SNE; equal arrays give equal points.

  Args:
    title: name of the method.
    arrays: arrays of its analysis.npz.
  """
  # Only this function needs scikit-learn, which takes a second to import.
  from sklearn.manifold import TSNE

  target = arrays["target"].item()
  is_target = arrays["domain"] == list(arrays["domain_names"]).index(target)
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
    target,
  )


def by_class(points: Points, theme: Theme) -> Figure:
  """Draws points in the colours of their classes."""
  names = points.class_names
  colours = theme.class_colours(len(names))
  whole, axes = _panel(points, "by class", theme)
  # In random order, so that no class covers all others.
  order = np.random.default_rng(_SEED).permutation(len(points.places))
  for is_target, marker in ((False, _SOURCE), (True, _TARGET)):
    rows = order[points.is_target[order] == is_target]
    axes.scatter(
      *points.places[rows].T, s=11, linewidths=0, marker=marker,
      color=colours[points.classes[rows]],
    )  # fmt: skip
  _name_sides(axes, points, (theme.colours.muted,) * 2)
  if len(names) <= len(theme.classes):
    _name_classes(whole, names, colours)
  else:
    scale = ScalarMappable(Normalize(0, len(names) - 1), theme.many)
    bar = whole.colorbar(
      scale, ax=axes, location="bottom", aspect=50, fraction=0.04
    )
    bar.set_ticks([0, len(names) - 1], labels=[names[0], names[-1]])
    for label, side in zip(bar.ax.get_xticklabels(), ("left", "right")):
      label.set_horizontalalignment(side)
  return whole


def by_side(points: Points, theme: Theme) -> Figure:
  """Draws points of the sources and of the target in two colours."""
  colours = theme.colours.muted, theme.methods[0]
  whole, axes = _panel(points, "source and target", theme)
  for is_target, marker, colour, alpha in (
    (False, _SOURCE, colours[0], 0.35),
    (True, _TARGET, colours[1], 0.8),
  ):
    axes.scatter(
      *points.places[points.is_target == is_target].T, s=11, linewidths=0,
      marker=marker, color=colour, alpha=alpha,
    )  # fmt: skip
  _name_sides(axes, points, colours)
  return whole


def _panel(points: Points, about: str, theme: Theme) -> tuple[Figure, Axes]:
  whole = theme.figure(4.1)
  axes = whole.add_subplot()
  axes.set(xticks=[], yticks=[], title=f"{points.title}, {about}")
  axes.margins(0.03)
  return whole, axes


def _name_sides(axes: Axes, points: Points, colours: tuple[str, str]) -> None:
  """Says below the points which shape the held-out target has."""
  names = "sources (validation)", f"{points.target} (held-out target)"
  markers = _SOURCE, _TARGET
  axes.legend(
    [_dot(c, marker) for c, marker in zip(colours, markers)], names,
    loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=0.2,
    ncols=2 if len(points.target) < 12 else 1, **_LEGEND,
  )  # fmt: skip


def _name_classes(whole: Figure, names: np.ndarray, colours) -> None:
  # Widths in ems of 8.5 points: a dot and its margins, then letters.
  room = WIDTH * 72 / 8.5
  columns = max(int(room / (2.8 + 0.6 * max(map(len, names)))), 1)
  lines = -(-len(names) // columns)
  dots = [_dot(colour, _SOURCE) for colour in colours]
  whole.legend(
    dots, names, loc="outside lower center", ncols=-(-len(names) // lines),
    **_LEGEND,
  )  # fmt: skip


def _dot(colour, marker: str) -> Line2D:
  return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=5)


def _spread(chosen: np.ndarray, most: int) -> np.ndarray:
  """Returns up to `most` of the chosen rows, evenly spread over them."""
  rows = np.flatnonzero(chosen)
  return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int)]
