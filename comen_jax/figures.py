"""Pictures of a run, from the arrays of `analysis.npz` alone."""

import pathlib

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def confusion(
  path: pathlib.Path, arrays: dict[str, np.ndarray], title: str
) -> None:
  """Confusion matrix [K, K], rows are true classes, in per cent of a row."""
  counts, class_names = arrays["confusion"], arrays["class_names"]
  share = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
  side = max(4.0, 0.45 * len(class_names) + 1.5)
  figure = Figure(figsize=(side, side), layout="constrained")
  axes = figure.add_subplot()
  axes.imshow(share, cmap="Blues", vmin=0, vmax=100)
  ticks = np.arange(len(class_names))
  axes.set_xticks(ticks, class_names, rotation=90 if side > 8 else 0)
  axes.set_yticks(ticks, class_names)
  axes.set(xlabel="predicted", ylabel="true", title=title)
  if len(class_names) <= 20:
    for (row, column), value in np.ndenumerate(share):
      if value >= 0.5:
        colour = "white" if value > 50 else "black"
        axes.text(
          column, row, f"{value:.0f}", ha="center", va="center",
          color=colour, fontsize=8,
        )  # fmt: skip
  _save(figure, path)


def latent_domains(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
  """The most certain source images of each latent domain, a row each."""
  pictures, certainty = arrays["thumbnails"], arrays["thumbnail_probs"]
  num_domains, count = certainty.shape
  figure = Figure(
    figsize=(0.5 * count + 2.2, 0.75 * num_domains + 0.3), layout="constrained"
  )
  for m in range(num_domains):
    axes = figure.add_subplot(num_domains, 1, m + 1)
    axes.imshow(np.concatenate(list(pictures[m]), axis=1))
    axes.set_axis_off()
    axes.set_title(_describe(arrays, m), fontsize=8, loc="left")
  _save(figure, path)


def _describe(arrays: dict[str, np.ndarray], m: int) -> str:
  counts = arrays["contingency"][m]
  parts = zip(arrays["domain_names"], counts)
  named = ", ".join(f"{name} {n}" for name, n in parts if n)
  return f"latent domain {m}: {counts.sum()} images ({named or 'none'})"


def _save(figure: Figure, path: pathlib.Path) -> None:
  FigureCanvasAgg(figure).print_png(path)
