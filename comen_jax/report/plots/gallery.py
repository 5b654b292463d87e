"""Draws the images that are most certain in each latent domain."""

import numpy as np
from matplotlib.figure import Figure

from comen_jax.report.document import Cell
from comen_jax.report.plots.theme import WIDTH, Theme
from comen_jax.run import figures

_COLUMNS = 12


def figure(arrays: dict[str, np.ndarray], theme: Theme) -> Figure:
  """Draws a block of images per latent domain."""
  num_domains, count = arrays["thumbnail_probs"].shape
  lines = -(-count // _COLUMNS)
  whole = theme.figure(num_domains * (lines * WIDTH / _COLUMNS + 0.25))
  for m in range(num_domains):
    axes = whole.add_subplot(num_domains, 1, m + 1)
    figures.draw_latent_domain(axes, arrays, m, _COLUMNS)
  return whole


def contingency(arrays: dict[str, np.ndarray]) -> tuple[tuple[Cell, ...], ...]:
  """Returns a table row per latent domain: its images, by true domain."""
  target = list(arrays["domain_names"]).index(arrays["target"].item())
  return tuple(
    (
      Cell(f"latent domain {m}"),
      Cell(f"{counts.sum():,}", numeric=True),
      *(
        # The target is not a source, so it has no training images.
        Cell(numeric=True)
        if n == target
        else Cell(
          f"{count:,}", bold=bool(0 < count == max(counts)), numeric=True
        )
        for n, count in enumerate(counts)
      ),
    )
    for m, counts in enumerate(arrays["contingency"])
  )
