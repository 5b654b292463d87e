"""Draws the confusion matrix of a method on the target."""

import numpy as np
from matplotlib.figure import Figure

from comen_jax.report.plots.theme import Theme
from comen_jax.run import figures

MAX_NAMED = 20  # Names of more classes would overlap.


def figure(title: str, arrays: dict[str, np.ndarray], theme: Theme) -> Figure:
  """Draws the matrix of a method, in per cent of each true class.

  Args:
    title: name of the method.
    arrays: arrays of its analysis.npz.
    theme: colours of the figure.
  """
  names, counts = arrays["class_names"], arrays["confusion"]
  named = len(names) <= MAX_NAMED
  longest = max(map(len, names)) if named else 0
  whole = theme.figure(3.7 + 0.06 * longest + (0 if named else 0.3))
  axes = whole.add_subplot()
  image = figures.draw_confusion(axes, counts, names, theme.shares, names=named)
  axes.set(
    xlabel="predicted",
    ylabel="true",
    title=f"{title}: {100 * accuracy(counts):.1f} %",
  )
  axes.tick_params(length=0)
  if not named:
    whole.colorbar(
      image, ax=axes, location="bottom", aspect=50, fraction=0.04,
      label="per cent of the true class",
    )  # fmt: skip
  return whole


def accuracy(counts: np.ndarray) -> float:
  """Returns the share of images on the diagonal of `counts` [K, K]."""
  return float(np.trace(counts) / max(counts.sum(), 1))
