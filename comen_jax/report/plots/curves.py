"""Draws training curves: loss and accuracy per epoch, for each seed."""

import pathlib
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from comen_jax.errors import UserError
from comen_jax.files import numbered_jsonl
from comen_jax.report.damage import Tell, warn
from comen_jax.report.plots.theme import Theme

_TARGET = "target (not used for selection)"
_DRAWN = ("loss", "loss_cls", "val_accuracy", "target_accuracy")


class Series(NamedTuple):
  """A quantity over the epochs of several seeds.

  Attributes:
    epochs: epochs that every seed has [E].
    values: value of each seed and epoch [seeds, E].
  """

  epochs: np.ndarray
  values: np.ndarray


def read(path: pathlib.Path, tell: Tell = warn) -> list[dict[str, Any]]:
  """Reads the epochs of a metrics.jsonl.

  Returns none, after a line about it, if the file is damaged.
  """
  try:
    found = numbered_jsonl(path)
    epochs = [(n, r) for n, r in found if r.get("kind") == "epoch"]
    for number, record in epochs:
      _check(record, f"{path}:{number}")
  except (UserError, OSError) as e:
    reason = e if isinstance(e, UserError) else f"{path}: {e.strerror}"
    tell(f"{reason}; its training curves are left out")
    return []
  return [record for _, record in epochs]


def _check(record: dict[str, Any], where: str) -> None:
  """Raises UserError if the record of an epoch is none."""
  whole = (
    isinstance(record.get("stage"), str)
    and isinstance(record.get("epoch"), int)
    and all(isinstance(record.get(k, 0), float | int) for k in _DRAWN)
  )
  if not whole:
    raise UserError(f"{where} is not the record of an epoch: remove the line")


def series(runs: list[list[dict[str, Any]]], name: str) -> Series:
  """Returns a quantity by epoch; no epochs if a seed does not have it."""
  found = [{r["epoch"]: r[name] for r in run if name in r} for run in runs]
  epochs = sorted(set.intersection(*map(set, found))) if found else []
  return Series(
    np.array(epochs), np.array([[one[e] for e in epochs] for one in found])
  )


def stages(run: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
  """Returns the name, first and last epoch of each stage."""
  spans: dict[str, tuple[int, int]] = {}
  for record in run:
    first, _ = spans.get(record["stage"], (record["epoch"], 0))
    spans[record["stage"]] = first, record["epoch"]
  return [(name, *span) for name, span in spans.items()]


class Runs(NamedTuple):
  """The runs of a method.

  Attributes:
    title: name of the method.
    colour: index of `Theme.methods`.
    seeds: records of the epochs, for each seed.
  """

  title: str
  colour: int
  seeds: list[list[dict[str, Any]]]


def loss(methods: list[Runs], theme: Theme) -> Figure:
  """Draws the training loss."""
  whole, axes = _axes(methods, "training loss", theme)
  for title, index, runs in methods:
    colour = theme.methods[index]
    _line(axes, series(runs, "loss"), colour, "-", title)
    _line(axes, series(runs, "loss_cls"), colour, ":",
          f"{title}, cross-entropy alone")  # fmt: skip
  axes.set_ylim(0, None)
  _legend(whole, axes)
  return whole


def accuracy(methods: list[Runs], theme: Theme) -> Figure:
  """Draws the accuracy on source validation and on the target."""
  whole, axes = _axes(methods, "accuracy, per cent", theme)
  for title, index, runs in methods:
    colour = theme.methods[index]
    _line(axes, series(runs, "val_accuracy"), colour, "-",
          f"{title}, source validation", scale=100)  # fmt: skip
    _line(axes, series(runs, "target_accuracy"), colour, "--",
          f"{title}, {_TARGET}", scale=100)  # fmt: skip
  _legend(whole, axes)
  return whole


def _axes(methods: list[Runs], title: str, theme: Theme) -> tuple[Figure, Axes]:
  whole = theme.figure(3.5)
  axes = whole.add_subplot()
  axes.set(xlabel="epoch")
  axes.set_title(title, pad=16)
  # The stages are those of the method that has most.
  spans = max((stages(runs.seeds[0]) for runs in methods), key=len)
  _shade(axes, spans, theme)
  axes.spines[["top", "right"]].set_visible(False)
  axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  axes.grid(axis="y", linewidth=0.5)
  return whole, axes


def _legend(whole: Figure, axes: Axes) -> None:
  lines, names = axes.get_legend_handles_labels()
  if lines:
    # Outside of the axes, so that it takes no room from their labels.
    whole.legend(lines, names, loc="outside lower center", fontsize=8)


def _line(
  axes: Axes, data: Series, colour: str, style: str, label: str, scale: int = 1
) -> None:
  if not len(data.epochs):
    return
  values = scale * data.values
  if len(values) > 1:
    axes.plot(
      data.epochs, values.T, style, color=colour, linewidth=0.6, alpha=0.5
    )
  axes.plot(
    data.epochs, values.mean(axis=0), style, color=colour, linewidth=1.6,
    marker="o" if len(data.epochs) == 1 else "", markersize=3, label=label,
  )  # fmt: skip


def _shade(axes: Axes, spans: list[tuple[str, int, int]], theme: Theme) -> None:
  """Names each stage above the axes and shades every other one."""
  if len(spans) < 2:
    return
  for number, (name, first, last) in enumerate(spans):
    if number % 2:
      axes.axvspan(
        first - 0.5, last + 0.5, color=theme.colours.raised, zorder=0
      )
    axes.text(
      (first + last) / 2, 1, name, transform=axes.get_xaxis_transform(),
      ha="center", va="bottom", fontsize=7.5, color=theme.colours.muted,
    )  # fmt: skip
  axes.set_xlim(spans[0][1] - 0.5, spans[-1][2] + 0.5)
