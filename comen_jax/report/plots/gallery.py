"""Draws the images that are most certain in each latent domain."""

import numpy as np
from matplotlib.figure import Figure

from comen_jax.report.document import Cell
from comen_jax.report.plots.theme import WIDTH, Theme
from comen_jax.run import figures

_COLUMNS = 6


def figure(arrays: dict[str, np.ndarray], m: int, theme: Theme) -> Figure:
  """Draws the images of latent domain m."""
  lines = -(-arrays["thumbnail_probs"].shape[1] // _COLUMNS)
  whole = theme.figure(lines * WIDTH / _COLUMNS + 0.4)
  axes = whole.add_subplot()
  figures.draw_latent_domain(axes, arrays, m, _COLUMNS)
  # Names of many domains do not fit in a line.
  axes.set_title(axes.get_title("left").replace(": ", "\n", 1), loc="left")
  return whole


def contingency(arrays: dict[str, np.ndarray]) -> tuple[tuple[Cell, ...], ...]:
  """Returns a table row per latent domain: its images, by true domain."""
  target = list(arrays["domain_names"]).index(arrays["target"].item())
  return tuple(
    (
      Cell(f"latent domain {m}"),
      Cell(f"{counts.sum():,}", numeric=True),
      *(
        Cell("held out", muted=True, numeric=True)
        if n == target
        else Cell(
          f"{count:,}", bold=bool(0 < count == max(counts)), numeric=True
        )
        for n, count in enumerate(counts)
      ),
    )
    for m, counts in enumerate(arrays["contingency"])
  )
