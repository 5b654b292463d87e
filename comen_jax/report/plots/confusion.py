"""Draws the confusion matrices of a target, methods side by side."""

import numpy as np
from matplotlib.figure import Figure

from comen_jax.report.plots.theme import WIDTH, Theme
from comen_jax.run import figures

MAX_NAMED = 20  # Names of more classes would overlap.


def figure(methods: dict[str, dict[str, np.ndarray]], theme: Theme) -> Figure:
  """Draws a matrix per method, in per cent of each true class.

  Args:
    methods: arrays of analysis.npz, by title of the method.
    theme: colours of the figure.
  """
  names = next(iter(methods.values()))["class_names"]
  named = len(names) <= MAX_NAMED
  longest = max(map(len, names)) if named else 0
  height = 3.8 + 0.06 * longest + (0 if named else 0.3)
  # A single matrix is as large as one of two.
  whole = theme.figure(height, WIDTH if len(methods) > 1 else 4.0)
  whole.get_layout_engine().set(wspace=0.04)
  panels = whole.subplots(1, len(methods), squeeze=False)[0]
  for axes, (title, arrays) in zip(panels, methods.items()):
    counts = arrays["confusion"]
    image = figures.draw_confusion(
      axes, counts, names, theme.shares, names=named
    )
    axes.set(
      xlabel="predicted", title=f"{title}: {100 * accuracy(counts):.1f} %"
    )
    axes.tick_params(length=0)
  panels[0].set_ylabel("true")
  for axes in panels[1:]:
    axes.set_yticks([])
  if not named:
    whole.colorbar(
      image, ax=list(panels), location="bottom", aspect=50, fraction=0.04,
      label="per cent of the true class",
    )  # fmt: skip
  return whole


def accuracy(counts: np.ndarray) -> float:
  """Returns the share of images on the diagonal of `counts` [K, K]."""
  return float(np.trace(counts) / max(counts.sum(), 1))
