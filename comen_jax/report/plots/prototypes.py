"""Draws the prototype graph: affinity (Eq. 8) of M domains x K classes."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from comen_jax.report.plots.theme import Theme

_MAX_NAMED = 20  # Names of more blocks would overlap.


def figure(arrays: dict[str, np.ndarray], theme: Theme) -> Figure:
  """Draws the same matrix ordered by latent domain and by class."""
  num_domains, num_classes = arrays["prototypes_seen"].shape
  by_domain, by_class = orders(num_domains, num_classes)
  domain_names = [f"domain {m}" for m in range(num_domains)]
  named = num_classes <= _MAX_NAMED
  longest = max(map(len, arrays["class_names"])) if named else 0
  whole = theme.figure(4.3 + 0.04 * longest)
  panels = whole.subplots(1, 2)
  for axes, order, names in zip(
    panels, (by_domain, by_class), (domain_names, arrays["class_names"])
  ):
    image = _draw(axes, ordered(arrays, order), names, theme)
  panels[0].set_title("ordered by latent domain")
  panels[1].set_title("ordered by class")
  whole.colorbar(
    image, ax=list(panels), location="bottom", aspect=50, fraction=0.04,
    extend="min", label="affinity (arrow: below the threshold, so no edge)",
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
    axes.set_yticks(centres, block_names)
    axes.tick_params(length=0)
  return image
