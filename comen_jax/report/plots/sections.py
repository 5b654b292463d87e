"""Draws all figures of a report, from the files in the folders of runs."""

import functools
import pathlib

import numpy as np

from comen_jax.report.document import Cell, Picture, Section, Table
from comen_jax.report.grouping import data_title
from comen_jax.report.plots import confusion, curves, gallery, prototypes, tsne
from comen_jax.report.plots.files import picture, slug
from comen_jax.report.plots.runs import Method, Task, tasks
from comen_jax.report.records import Record

Arrays = dict[str, np.ndarray]


def draw(records: list[Record], folder: pathlib.Path) -> tuple[Section, ...]:
  """Draws the figures that are missing or out of date; prints a line for each.

  Args:
    records: finished runs. Training curves need a run's metrics.jsonl, all
      other figures its analysis.npz; runs without them are skipped.
    folder: folder for the PNG files.

  Returns:
    One section per kind of figure; kinds without any figure are left out.
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
      "Images of latent domains", (_LATENT,), _tables(tables),
      tuple(galleries),
    ),
    Section("Prototype graph", (_GRAPH,), pictures=tuple(graphs)),
  )  # fmt: skip
  return tuple(s for s in sections if s.pictures)


_CURVES = (
  "Thick lines are means over seeds, thin lines are single seeds. Each method"
  " has its own sum of losses, so losses of different methods cannot be"
  " compared; dotted lines show the cross-entropy alone. The epoch is chosen by"
  " source validation. Target accuracy is shown for the epochs that could be"
  " chosen; it is not used to choose."
)
_CONFUSION = (
  "Rows are true classes and columns are predictions, in per cent of the row,"
  " over all images of the target (lowest seed)."
)
_FEATURES = (
  "t-SNE of the last features, scaled to unit length. All methods show the same"
  " images: at most 500 of the target and 500 source validation images (lowest"
  " seed). Only neighbourhoods carry meaning; sizes of groups and distances"
  " between them do not."
)
_LATENT = (
  "Latent domains are discovered without domain labels; true domains of the"
  " training images are counted afterwards. The images shown are those with the"
  " highest probability of their latent domain (lowest seed). Probabilities are"
  " those of the selected network, which may differ from the domains that were"
  " fixed before the last stage."
)
_GRAPH = (
  "Each node is the prototype of a latent domain and a class. If a class is"
  " similar in all domains, its block stands out on the diagonal of the matrix"
  " ordered by class, and every block of the matrix ordered by domain has a"
  " diagonal of its own."
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
  @functools.cache  # Light and dark share it; up-to-date files need none.
  def points() -> list[tsne.Points]:
    return [tsne.embed(m.title, arrays) for m, arrays in analysed]

  classes = len(analysed[0][1]["class_names"])
  palette = (
    f" The {classes} classes are too many to have a colour each: classes that"
    " are neighbours in the data set have similar colours."
    if classes > tsne.MAX_COLOURS
    else ""
  )
  return picture(
    folder / slug("tsne", *task[:2]),
    f"{task.title}: features of {_named(analysed)}, coloured by class and by"
    f" source or target.{palette}",
    [m.analysis for m, _ in analysed],
    lambda theme: tsne.figure(points(), theme),
    tuple(m.title for m, _ in analysed),
  )


def _confusion(task: Task, analysed, folder: pathlib.Path) -> Picture:
  methods = {m.title: arrays for m, arrays in analysed}
  classes = len(analysed[0][1]["class_names"])
  order = (
    f" The {classes} classes are in the order of the data set, without names."
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
    f"{task.title}: training images with the highest probability in each latent"
    f" domain of {method.title} (seed {method.seed}).",
    [method.analysis],
    functools.partial(gallery.figure, arrays),
  )


def _graph(
  task: Task, method: Method, arrays: Arrays, folder: pathlib.Path
) -> Picture:
  seen = arrays["prototypes_seen"]
  unseen = "" if seen.all() else f"; {(~seen).sum()} without any image are grey"
  return picture(
    folder / slug("prototypes", *task[:2], method.title),
    f"{task.title}: affinity of the {seen.size} prototypes of {method.title}"
    f" (seed {method.seed}){unseen}.",
    [method.analysis],
    functools.partial(prototypes.figure, arrays),
  )


def _count(tables: dict, task: Task, method: Method, arrays: Arrays) -> None:
  """Adds the true domains of a run's latent domains to a table."""
  _, rows = tables.setdefault(
    task.dataset, (tuple(map(str, arrays["domain_names"])), [])
  )
  place = task.title.removeprefix(f"{data_title(task.dataset)}, ")
  heading = f"{place}, {method.title}, seed {method.seed}"
  rows += [(Cell(heading),), *gallery.contingency(arrays)]


def _tables(tables: dict) -> tuple[Table, ...]:
  return tuple(
    Table(
      f"Training images of each latent domain by true domain, on"
      f" {data_title(dataset)}",
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
