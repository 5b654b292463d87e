"""How figures look, light and dark, and in which colours.

Colours can be told apart by people who confuse some: Okabe and Ito's for
methods, Petroff's ten for classes, a continuous map where classes are many.
"""

from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from comen_jax.report import palette
from comen_jax.report.palette import Palette

WIDTH = 7.2  # Inches, of 100 pixels of the page.
DPI = 200  # Two pixels of the file for one of the page.

_CLASSES = (
  "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6",
  "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd",
)  # fmt: skip


class Theme(NamedTuple):
  """What a figure asks for.

  Attributes:
    name: "light" or "dark".
    colours: of the page.
    methods: one for each method of a figure, in the order of their panels.
    classes: as many as can be told apart.
    many: for more classes than those.
    shares: from none, the background, to all.
    absent: of what was never measured.
  """

  name: str
  colours: Palette
  methods: tuple[str, ...]
  classes: tuple[str, ...]
  many: Colormap
  shares: Colormap
  absent: str

  def figure(self, height: float, width: float = WIDTH) -> Figure:
    """An empty figure, in inches; fill and save it within `rc`."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")

  def class_colours(self, count: int) -> np.ndarray:
    """[count, 4]."""
    if count <= len(self.classes):
      return matplotlib.colors.to_rgba_array(self.classes[:count])
    return self.many(np.linspace(0, 1, count))

  @property
  def rc(self) -> dict[str, Any]:
    """For `matplotlib.rc_context`, around drawing and saving."""
    ink, line = self.colours.ink, self.colours.line
    return {
      "figure.facecolor": self.colours.background,
      "axes.facecolor": self.colours.background,
      "text.color": ink,
      "axes.labelcolor": ink,
      "axes.titlecolor": ink,
      "xtick.labelcolor": ink,
      "ytick.labelcolor": ink,
      "xtick.color": line,
      "ytick.color": line,
      "axes.edgecolor": line,
      "grid.color": line,
      "font.size": 9,
      "axes.titlesize": 9.5,
      "axes.labelsize": 9,
      "xtick.labelsize": 8.5,
      "ytick.labelsize": 8.5,
      "legend.fontsize": 9,
      "legend.frameon": False,
      # A class may be called "$": names are text, never formulas.
      "text.parse_math": False,
    }


def _towards(colours: Palette, *tones: str) -> Colormap:
  return LinearSegmentedColormap.from_list(
    "shares", [colours.background, *tones]
  )


LIGHT = Theme(
  "light",
  palette.LIGHT,
  ("#d55e00", "#0072b2"),
  _CLASSES,
  matplotlib.colormaps["viridis"],
  _towards(palette.LIGHT, "#9ecae1", "#3182bd", "#08306b"),
  "#c3c8ce",
)
DARK = Theme(
  "dark",
  palette.DARK,
  ("#f0a04b", "#56b4e9"),
  # The two darkest of the ten would sink into the background.
  tuple(
    {"#bd1f01": "#e5452b", "#832db6": "#ae6be0"}.get(c, c) for c in _CLASSES
  ),
  matplotlib.colormaps["viridis"],
  _towards(palette.DARK, "#1d4f7c", "#4a9bd4", "#dff1ff"),
  "#4b525b",
)
