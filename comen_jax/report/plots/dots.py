"""Draws every seed of every row as a dot, per target, from records alone."""

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from comen_jax.report.grouping import Comparison
from comen_jax.report.plots.theme import Theme
from comen_jax.report.statistics import summarise
from comen_jax.report.tables.accuracy import BEST_VALIDATION

_COLOURS = {"deepall": 0, "comen": 1}  # Indices of `Theme.methods`.
_LONGEST = 22  # Letters of a name in a line.
_ROW, _LINE = 0.26, 0.142  # Inches of a row, and of a line of a name.
_LEAST_SPAN = 8.0  # Points; on a shorter axis, noise would look large.


class Row(NamedTuple):
  """The seeds of a row on one target.

  Attributes:
    title: name of the row.
    colour: index of `Theme.methods`, None for other rows.
    values: target accuracy in per cent, by seed.
  """

  title: str
  colour: int | None
  values: Mapping[int, float]


def rows(comparison: Comparison, target: str) -> list[Row]:
  """Returns the rows that have a run on a target."""
  found = []
  for group in comparison.groups:
    values = group.values(BEST_VALIDATION).get(target, {})
    if values:
      percent = {seed: 100 * value for seed, value in values.items()}
      colour = _COLOURS.get(group.setting.row)
      found.append(Row(group.title, colour, percent))
  return found


def limits(shown: list[Row]) -> tuple[float, float]:
  """Returns the ends of the axis, with all dots and a margin inside."""
  values = [value for row in shown for value in row.values.values()]
  low, high = min(values), max(values)
  half = max(high - low, _LEAST_SPAN) / 2 * 1.15
  middle = (low + high) / 2
  return middle - half, middle + half


def label(title: str) -> str:
  """Breaks a long name into lines, so that the dots keep their room."""
  whole = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
  return textwrap.fill(whole, _LONGEST)


def places(names: list[str]) -> tuple[list[float], float]:
  """Returns the middle of each row below the top, and the height, in inches.

  A name of several lines has a higher row.
  """
  middles, end = [], 0.0
  for name in names:
    lines = name.count("\n") + 1
    height = _ROW + _LINE * (lines - 1)
    middles.append(end + height / 2)
    end += height
  return middles, end


def figure(target: str, shown: list[Row], theme: Theme) -> Figure:
  """Draws a line per row: a dot per seed, and a tick at their mean."""
  names = [label(row.title) for row in shown]
  middles, height = places(names)
  whole = theme.figure(0.75 + height)
  axes = whole.add_subplot()
  for place, row in zip(middles, shown):
    colour = (
      theme.colours.muted if row.colour is None else theme.methods[row.colour]
    )
    values = list(row.values.values())
    axes.plot(
      values, [place] * len(values), "o", color=colour, markersize=6,
      markeredgewidth=0, alpha=0.6, clip_on=False,
    )  # fmt: skip
    mean = summarise(values).mean
    if len(values) > 1:
      axes.plot([mean], [place], "|", color=theme.colours.ink, markersize=13,
                markeredgewidth=1.4)  # fmt: skip
    axes.annotate(
      f"{mean:.1f}", (1, place), xycoords=("axes fraction", "data"),
      xytext=(4, 0), textcoords="offset points", va="center",
      fontsize=8.5, annotation_clip=False,
    )  # fmt: skip
  axes.set_yticks(middles, names)
  axes.set(ylim=(height, 0), xlim=limits(shown))
  axes.set_title(f"target {target}", loc="left")
  axes.xaxis.set_major_locator(MaxNLocator(4))
  axes.grid(axis="x", linewidth=0.5)
  axes.set_axisbelow(True)
  axes.tick_params(length=0)
  axes.spines[["top", "right", "left"]].set_visible(False)
  return whole
