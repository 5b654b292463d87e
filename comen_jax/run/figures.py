"""Draws the figures of a run from the arrays of its `analysis.npz`.

`draw_confusion` and `draw_latent_domain` draw on given axes, so that a report
can show several runs side by side.
"""

import pathlib

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

# A class may be named "$": names are text, never formulas.
_PLAIN = {"text.parse_math": False}
_MAX_NUMBERED = 20  # With more classes, cells are too small for numbers.


@matplotlib.rc_context(_PLAIN)
def confusion(
  path: pathlib.Path, arrays: dict[str, np.ndarray], title: str
) -> None:
  """Saves the confusion matrix [K, K]: rows are true classes, in per cent."""
  side = max(4.0, 0.45 * len(arrays["class_names"]) + 1.5)
  figure = Figure(figsize=(side, side), layout="constrained")
  axes = figure.add_subplot()
  draw_confusion(axes, arrays["confusion"], arrays["class_names"])
  axes.set(xlabel="predicted", ylabel="true", title=title)
  _save(figure, path)


@matplotlib.rc_context(_PLAIN)
def latent_domains(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
  """Saves the most certain source images of each latent domain, by row."""
  num_domains, count = arrays["thumbnail_probs"].shape
  figure = Figure(
    figsize=(0.5 * count + 2.2, 0.75 * num_domains + 0.3), layout="constrained"
  )
  for m in range(num_domains):
    axes = figure.add_subplot(num_domains, 1, m + 1)
    draw_latent_domain(axes, arrays, m, columns=count)
  _save(figure, path)


def draw_confusion(
  axes: Axes,
  counts: np.ndarray,
  class_names: np.ndarray,
  cmap: str | Colormap = "Blues",
  names: bool = True,
) -> AxesImage:
  """Draws a confusion matrix in per cent of each true class.

  Args:
    axes: axes to draw on.
    counts: numbers of images [K, K]; rows are true classes.
    class_names: names of the classes [K]. Up to 20 classes, cells show numbers.
    cmap: colour map from 0 to 100 per cent.
    names: whether to print the names along the axes.

  Returns:
    The drawn matrix, which a colour bar needs.
  """
  share = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
  image = axes.imshow(share, cmap=cmap, vmin=0, vmax=100)
  axes.set(xticks=[], yticks=[])
  if names:
    ticks, long = np.arange(len(class_names)), max(map(len, class_names)) > 2
    axes.set_xticks(ticks, class_names, rotation=90 if long else 0)
    axes.set_yticks(ticks, class_names)
  if len(class_names) <= _MAX_NUMBERED:
    for (row, column), value in np.ndenumerate(share):
      if value >= 0.5:
        axes.text(
          column, row, f"{value:.0f}", ha="center", va="center",
          color=_readable_on(image.cmap(value / 100)), fontsize=8,
        )  # fmt: skip
  return image


def draw_latent_domain(
  axes: Axes, arrays: dict[str, np.ndarray], m: int, columns: int
) -> None:
  """Draws the most certain images of latent domain m, `columns` per line."""
  images, certainty = arrays["thumbnails"][m], arrays["thumbnail_probs"][m]
  count, size = len(images), images.shape[1]
  gap = max(1, size // 16)
  step = size + gap
  # Transparent between images, and after the last one of the domain.
  sheet = np.zeros((-(-count // columns) * step, columns * step, 4), np.uint8)
  for n in np.flatnonzero(certainty > 0):
    top, left = np.array(divmod(n, columns)) * step
    sheet[top : top + size, left : left + size, :3] = images[n]
    sheet[top : top + size, left : left + size, 3] = 255
  axes.imshow(sheet[:-gap, :-gap])
  axes.set_axis_off()
  axes.set_title(_describe(arrays, m), fontsize=9, loc="left")


def _describe(arrays: dict[str, np.ndarray], m: int) -> str:
  if "contingency" not in arrays:
    return f"latent domain {m}"
  counts = arrays["contingency"][m]
  parts = zip(arrays["domain_names"], counts)
  named = ", ".join(f"{name} {n:,}" for name, n in parts if n)
  return f"latent domain {m}: {counts.sum():,} images ({named or 'none'})"


def _readable_on(colour: tuple[float, ...]) -> str:
  """Returns black or white, whichever has more contrast (WCAG 2, 1.4.3)."""
  red, green, blue = (
    c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
    for c in colour[:3]
  )
  luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return "black" if luminance > 0.179 else "white"


def _save(figure: Figure, path: pathlib.Path) -> None:
  FigureCanvasAgg(figure).print_png(path)
