"""Draws the prototype graph: affinity (Eq. 8) of M domains x K classes."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from comen_jax.report.plots.theme import Theme

_MAX_NAMED = 20  # Names of more blocks would overlap.


def by_domain(arrays: dict[str, np.ndarray], theme: Theme) -> Figure:
  """Draws the matrix ordered by latent domain."""
  order, _ = orders(*arrays["prototypes_seen"].shape)
  names = [f"domain {m}" for m in range(len(arrays["prototypes_seen"]))]
  return _figure(arrays, order, "ordered by latent domain", names, theme)


def by_class(arrays: dict[str, np.ndarray], theme: Theme) -> Figure:
  """Draws the matrix ordered by class."""
  _, order = orders(*arrays["prototypes_seen"].shape)
  names = arrays["class_names"]
  return _figure(arrays, order, "ordered by class", names, theme)


def _figure(arrays, order: np.ndarray, title: str, names, theme: Theme):
  longest = max(map(len, names)) if len(names) <= _MAX_NAMED else 0
  whole = theme.figure(4.35 + 0.04 * longest)
  axes = whole.add_subplot()
  image = _draw(axes, ordered(arrays, order), names, theme)
  axes.set_title(title)
  whole.colorbar(
    image, ax=axes, location="bottom", aspect=40, fraction=0.04, extend="min",
    label="affinity (arrow: below threshold, no edge)",
  )  # fmt: skip
  return whole


def orders(num_domains: int, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns nodes n = m * K + k by domain then class, by class then domain."""
  nodes = np.arange(num_domains * num_classes)
  return nodes, nodes.reshape(num_domains, num_classes).T.reshape(-1)


def ordered(
  arrays: dict[str, np.ndarray], order: np.ndarray
) -> np.ma.MaskedArray:
  """Returns the affinity in that order, without prototypes never seen."""
  unseen = ~arrays["prototypes_seen"].reshape(-1)[order]
  matrix = arrays["affinity"][np.ix_(order, order)]
  return np.ma.array(matrix, mask=unseen[:, None] | unseen[None, :])


def _draw(
  axes: Axes, matrix: np.ma.MaskedArray, block_names, theme: Theme
) -> AxesImage:
  # The scale starts at the smallest edge: cosines are often alike.
  values = matrix.compressed()
  low = values[values > 0].min(initial=0.9)
  colours = ListedColormap(theme.shares(np.linspace(0.15, 1, 256)))
  colours = colours.with_extremes(
    bad=theme.absent, under=theme.colours.background
  )
  image = axes.imshow(
    matrix,
    cmap=colours,
    vmin=np.floor(10 * low) / 10,
    vmax=1,
    interpolation="nearest",
  )
  size = len(matrix) // len(block_names)
  few = len(block_names) <= _MAX_NAMED
  borders = np.arange(1, len(block_names)) * size - 0.5
  for draw in (axes.vlines, axes.hlines):
    # Many thick lines would hide the values.
    draw(
      borders,
      -0.5,
      len(matrix) - 0.5,
      color=theme.colours.muted if few else theme.colours.line,
      linewidth=0.6 if few else 0.2,
    )
  axes.set(xticks=[], yticks=[])
  if few:
    centres = np.arange(len(block_names)) * size + (size - 1) / 2
    wide = sum(map(len, block_names)) > 30
    axes.set_xticks(centres, block_names, rotation=90 if wide else 0)
    # Upright, long names would take the room of the matrix.
    axes.set_yticks(
      centres, block_names, rotation=90 if len(block_names) < 5 else 0,
      va="center",
    )  # fmt: skip
    axes.tick_params(length=0)
  return image
