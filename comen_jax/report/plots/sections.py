"""All figures of a report, from the folders that runs left behind."""

import functools
import pathlib

import numpy as np

from comen_jax.report.document import Cell, Picture, Section, Table
from comen_jax.report.grouping import data_title
from comen_jax.report.plots import (
  confusion,
  curves,
  gallery,
  prototypes,
  tsne,
)
from comen_jax.report.plots.files import picture, slug
from comen_jax.report.plots.runs import Method, Task, tasks
from comen_jax.report.records import Record

Arrays = dict[str, np.ndarray]


def draw(records: list[Record], folder: pathlib.Path) -> tuple[Section, ...]:
  """Draws what is not there yet, a line printed for each figure.

  Args:
    records: of runs; those without a folder, or whose folder lacks
      analysis.npz, are passed over.
    folder: for the PNG files.

  Returns:
    Sections of figures; none of a kind for which there is nothing to draw.
  """
  folder.mkdir(parents=True, exist_ok=True)
  features, confusions, galleries, graphs, lines = [], [], [], [], []
  tables: dict[str, tuple[tuple[str, ...], list]] = {}
  for task in tasks(records):
    lines += _curves(task, folder)
    analysed = [(m, _load(m)) for m in task.methods if m.analysis]
    if not analysed:
      continue
    features.append(_features(task, analysed, folder))
    confusions.append(_confusion(task, analysed, folder))
    for method, arrays in analysed:
      if "thumbnails" in arrays:
        galleries.append(_gallery(task, method, arrays, folder))
        _count(tables, task, method, arrays)
      if "affinity" in arrays:
        graphs.append(_graph(task, method, arrays, folder))
  sections = (
    Section("Training curves", (_CURVES,), pictures=tuple(lines)),
    Section("Confusion matrices", (_CONFUSION,), pictures=tuple(confusions)),
    Section("Features", (_FEATURES,), pictures=tuple(features)),
    Section(
      "Latent domains in pictures", (_LATENT,), _tables(tables),
      tuple(galleries),
    ),
    Section("Prototype graph", (_GRAPH,), pictures=tuple(graphs)),
  )  # fmt: skip
  return tuple(s for s in sections if s.pictures)


_CURVES = (
  "Mean over seeds (thick) and each seed (thin). A method's loss is the sum of"
  " its own terms, so that losses of different methods do not compare; dotted,"
  " the cross-entropy alone. Epochs are chosen by source validation; the"
  " target's accuracy is shown for the candidates only and plays no part."
)
_CONFUSION = (
  "Rows are true classes, columns predictions, in per cent of the row; all"
  " images of the target, lowest seed."
)
_FEATURES = (
  "t-SNE of the last features, scaled to unit length, of the same images for"
  " each method (lowest seed, at most 500 of the target and 500 of source"
  " validation). Only nearness means something: distances between groups and"
  " their sizes do not."
)
_LATENT = (
  "Latent domains are found without domain labels; the true domains of the"
  " training images are counted afterwards. Pictures are those whose latent"
  " domain is most certain, lowest seed. All is as the chosen network sees it,"
  " which may differ from the domains that were fixed before its last stage."
)
_GRAPH = (
  "Nodes are the prototypes of each latent domain and class. Where a class"
  " looks alike in all domains, its block stands out on the diagonal of the"
  " matrix by class, and each block of the matrix by domain has a diagonal of"
  " its own."
)


def _curves(task: Task, folder: pathlib.Path) -> list[Picture]:
  runs = []
  for m in task.methods:
    seeds = [epochs for log in m.logs if (epochs := curves.read(log))]
    if seeds:
      runs.append(curves.Runs(m.title, m.colour, seeds))
  if not runs:
    return []
  counts = ", ".join(
    f"{r.title} {len(r.seeds)} seed{'s' * (len(r.seeds) > 1)}" for r in runs
  )
  return [
    picture(
      folder / slug("curves", *task[:2]),
      f"{task.title}: {counts}.",
      [log for m in task.methods for log in m.logs],
      functools.partial(curves.figure, runs),
      tuple(r.title for r in runs),
    )
  ]


def _features(task: Task, analysed, folder: pathlib.Path) -> Picture:
  @functools.cache  # Once for light and dark, and not at all if both are there.
  def points() -> list[tsne.Points]:
    return [tsne.embed(m.title, arrays) for m, arrays in analysed]

  classes = len(analysed[0][1]["class_names"])
  palette = (
    f" The {classes} classes are too many for a colour each: neighbours in"
    " the data set's order have similar ones."
    if classes > tsne.MAX_COLOURS
    else ""
  )
  return picture(
    folder / slug("tsne", *task[:2]),
    f"{task.title}: features of {_named(analysed)}, by class and as source"
    f" against target.{palette}",
    [m.analysis for m, _ in analysed],
    lambda theme: tsne.figure(points(), theme),
    tuple(m.title for m, _ in analysed),
  )


def _confusion(task: Task, analysed, folder: pathlib.Path) -> Picture:
  methods = {m.title: arrays for m, arrays in analysed}
  classes = len(analysed[0][1]["class_names"])
  order = (
    f" The {classes} classes stand in the data set's order, unnamed."
    if classes > confusion.MAX_NAMED
    else ""
  )
  return picture(
    folder / slug("confusion", *task[:2]),
    f"{task.title}: {_named(analysed)}.{order}",
    [m.analysis for m, _ in analysed],
    functools.partial(confusion.figure, methods),
    tuple(methods),
  )


def _gallery(
  task: Task, method: Method, arrays: Arrays, folder: pathlib.Path
) -> Picture:
  return picture(
    folder / slug("latent", *task[:2], method.title),
    f"{task.title}: most certain training images of each latent domain of"
    f" {method.title} (seed {method.seed}).",
    [method.analysis],
    functools.partial(gallery.figure, arrays),
  )


def _graph(
  task: Task, method: Method, arrays: Arrays, folder: pathlib.Path
) -> Picture:
  seen = arrays["prototypes_seen"]
  unseen = f"; grey, {(~seen).sum()} never seen" if not seen.all() else ""
  return picture(
    folder / slug("prototypes", *task[:2], method.title),
    f"{task.title}: affinity of the {seen.size} prototypes of {method.title}"
    f" (seed {method.seed}){unseen}.",
    [method.analysis],
    functools.partial(prototypes.figure, arrays),
  )


def _count(tables: dict, task: Task, method: Method, arrays: Arrays) -> None:
  """Adds a latent domain's true domains to the data set's table."""
  _, rows = tables.setdefault(
    task.dataset, (tuple(map(str, arrays["domain_names"])), [])
  )
  heading = f"target {task.target}, {method.title}, seed {method.seed}"
  rows += [(Cell(heading),), *gallery.contingency(arrays)]


def _tables(tables: dict) -> tuple[Table, ...]:
  return tuple(
    Table(
      f"{data_title(dataset)}: training images of each latent domain, by true"
      " domain",
      ("", "images", *domains),
      tuple(rows),
    )
    for dataset, (domains, rows) in tables.items()
  )


def _named(analysed) -> str:
  return " and ".join(f"{m.title} (seed {m.seed})" for m, _ in analysed)


def _load(method: Method) -> Arrays:
  with np.load(method.analysis) as arrays:
    return dict(arrays)
