"""Colours and fonts of figures, light and dark.

Methods have the colours of Okabe and Ito. Ten classes have colours that were
searched for: on each background, any two are at least 0.19 apart in OKLab, and
at least 0.09 as a reader without green cones sees them. More classes have a
continuous colour map.
"""

from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from comen_jax.report import palette
from comen_jax.report.palette import Palette

# Width of a panel in inches; an inch is 100 pixels of the page, and a phone
# is about 375 pixels wide.
WIDTH = 3.45
DPI = 200  # Two pixels of the file for each pixel of the page.


class Theme(NamedTuple):
  """Colours and settings of a figure.

  Attributes:
    name: "light" or "dark".
    colours: colours of the page.
    methods: a colour for each method of a figure.
    classes: a colour for each class, as many as can be told apart.
    many: colour map for more classes than those.
    shares: colour map for shares from 0 (the background) to 1.
    absent: colour of values that were never measured.
  """

  name: str
  colours: Palette
  methods: tuple[str, ...]
  classes: tuple[str, ...]
  many: Colormap
  shares: Colormap
  absent: str

  def figure(self, height: float, width: float = WIDTH) -> Figure:
    """Makes an empty figure, sizes in inches; draw and save it within `rc`."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")

  def class_colours(self, count: int) -> np.ndarray:
    """Returns a colour for each of `count` classes [count, 4]."""
    if count <= len(self.classes):
      return matplotlib.colors.to_rgba_array(self.classes[:count])
    return self.many(np.linspace(0, 1, count))

  @property
  def rc(self) -> dict[str, Any]:
    """Returns settings for `matplotlib.rc_context`, to draw and save in."""
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
      # A class may be named "$": names are text, never formulas.
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
  (
    "#2d4b69", "#9600b4", "#c3780f", "#87c3b4", "#6978f0",
    "#961e1e", "#2dd200", "#1e1ee1", "#e15ae1", "#2d870f",
  ),
  matplotlib.colormaps["viridis"],
  _towards(palette.LIGHT, "#9ecae1", "#3182bd", "#08306b"),
  "#c3c8ce",
)  # fmt: skip
DARK = Theme(
  "dark",
  palette.DARK,
  ("#f0a04b", "#56b4e9"),
  (
    "#00ffff", "#f078e1", "#f0f00f", "#2db496", "#a500ff",
    "#c3870f", "#00e10f", "#1e6996", "#f0c3b4", "#2d7800",
  ),
  matplotlib.colormaps["viridis"],
  _towards(palette.DARK, "#1d4f7c", "#4a9bd4", "#dff1ff"),
  "#4b525b",
)  # fmt: skip
