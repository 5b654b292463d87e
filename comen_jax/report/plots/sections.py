"""Draws all figures of a report, from records and the folders of runs."""

import functools
import pathlib

from comen_jax.report.damage import Tell, warn
from comen_jax.report.document import Cell, Picture, Section, Table
from comen_jax.report.grouping import Comparison, data_title
from comen_jax.report.plots import (
  confusion,
  curves,
  dots,
  gallery,
  prototypes,
  tsne,
)
from comen_jax.report.plots.files import picture, slug
from comen_jax.report.plots.runs import Method, Task, tasks
from comen_jax.report.records import Record
from comen_jax.report.tables.comen import without_parts


def draw_seeds(found: list[Comparison], folder: pathlib.Path) -> Section:
  """Draws every seed of every comparison; this needs records alone."""
  folder.mkdir(parents=True, exist_ok=True)
  return Section(
    "Every seed",
    (_SEEDS,),
    pictures=tuple(_seeds(without_parts(one), folder) for one in found),
  )


def draw(
  records: list[Record], folder: pathlib.Path, tell: Tell = warn
) -> tuple[Section, ...]:
  """Draws the figures that are missing or out of date; prints a line for each.

  Args:
    records: finished runs. Training curves need a run's metrics.jsonl, all
      other figures its analysis.npz; runs without them are skipped.
    folder: folder for the PNG files.
    tell: is told of each file that is damaged.

  Returns:
    One section per kind of figure; kinds without any figure are left out.
  """
  folder.mkdir(parents=True, exist_ok=True)
  features, confusions, galleries, graphs, lines = [], [], [], [], []
  tables: dict[str, tuple[tuple[str, ...], list]] = {}
  for task in tasks(records, tell):
    lines += _curves(task, folder)
    analysed = [m for m in task.methods if m.analysis]
    if not analysed:
      continue
    features.append(_features(task, analysed, folder))
    confusions.append(_confusion(task, analysed, folder))
    for method in analysed:
      if "thumbnails" in method.arrays:
        galleries.append(_gallery(task, method, folder))
      if "contingency" in method.arrays:
        _count(tables, task, method)
      if "affinity" in method.arrays:
        graphs.append(_graph(task, method, folder))
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


_SEEDS = (
  "A dot is the target accuracy (%) of one run, at the epoch that source"
  " validation chose; a tick is the mean over seeds, printed at the right. Each"
  " target is held out of training and has an axis of its own."
)
_TWO_ROWS = (
  " From here on, figures show at most two methods: DeepAll and COMEN. If one"
  " of them was not trained, the next row of the table has its place and"
  " colour."
)
_CURVES = (
  "Thick lines are means over seeds, thin lines are single seeds. Each method"
  " has its own sum of losses, so losses of different methods cannot be"
  " compared; dotted lines show the cross-entropy alone. The epoch is chosen by"
  " source validation. Target accuracy is shown for the epochs that could be"
  " chosen; it is not used to choose."
) + _TWO_ROWS
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
  "Latent domains are discovered without domain labels; true domains are"
  " counted afterwards, over all source images, training and validation, by the"
  " domains that were fixed before the last stage. The images shown are those"
  " with the highest probability of their latent domain in the chosen network"
  " (lowest seed)."
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
    if m.logs:
      seeds = [log.epochs for log in m.logs]
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
      [log.path for m in task.methods for log in m.logs],
      {
        "loss": functools.partial(curves.loss, runs),
        "accuracy": functools.partial(curves.accuracy, runs),
      },
      tuple(r.title for r in runs),
    )
  ]


def _seeds(comparison: Comparison, folder: pathlib.Path) -> Picture:
  shown = {t: dots.rows(comparison, t) for t in comparison.targets}
  shown = {target: rows for target, rows in shown.items() if rows}
  return picture(
    folder / slug("seeds", comparison.title),
    f"{comparison.title}: target accuracy (%) of every seed.",
    [],
    {t: functools.partial(dots.figure, t, rows) for t, rows in shown.items()},
    (repr(shown),),
  )


def _features(
  task: Task, analysed: list[Method], folder: pathlib.Path
) -> Picture:
  @functools.cache  # All panels share it; up-to-date files need none.
  def points(n: int) -> tsne.Points:
    return tsne.embed(analysed[n].title, analysed[n].arrays)

  classes = len(analysed[0].arrays["class_names"])
  palette = (
    f" The {classes} classes are too many to have a colour each: classes that"
    " are neighbours in the data set have similar colours."
    if classes > tsne.MAX_COLOURS
    else ""
  )
  numbered = list(enumerate(analysed))
  return picture(
    folder / slug("tsne", *task[:2]),
    f"{task.title}: features of {_named(analysed)}, coloured by class and by"
    f" source or target. Triangles are images of the held-out target.{palette}",
    [m.analysis for m in analysed],
    {
      f"{m.title}-class": lambda theme, n=n: tsne.by_class(points(n), theme)
      for n, m in numbered
    }
    | {
      f"{m.title}-side": lambda theme, n=n: tsne.by_side(points(n), theme)
      for n, m in numbered
    },
    tuple(m.title for m in analysed),
  )


def _confusion(
  task: Task, analysed: list[Method], folder: pathlib.Path
) -> Picture:
  classes = len(analysed[0].arrays["class_names"])
  order = (
    f" The {classes} classes are in the order of the data set, without names."
    if classes > confusion.MAX_NAMED
    else ""
  )
  return picture(
    folder / slug("confusion", *task[:2]),
    f"{task.title}: {_named(analysed)}.{order}",
    [m.analysis for m in analysed],
    {
      m.title: functools.partial(confusion.figure, m.title, m.arrays)
      for m in analysed
    },
    tuple(m.title for m in analysed),
  )


def _gallery(task: Task, method: Method, folder: pathlib.Path) -> Picture:
  return picture(
    folder / slug("latent", *task[:2], method.title),
    f"{task.title}: training images with the highest probability in each latent"
    f" domain of {method.title} (seed {method.seed}).",
    [method.analysis],
    {
      str(m): functools.partial(gallery.figure, method.arrays, m)
      for m in range(len(method.arrays["thumbnails"]))
    },
    (str("contingency" in method.arrays),),
  )


def _graph(task: Task, method: Method, folder: pathlib.Path) -> Picture:
  seen = method.arrays["prototypes_seen"]
  unseen = "" if seen.all() else f"; {(~seen).sum()} without any image are grey"
  return picture(
    folder / slug("prototypes", *task[:2], method.title),
    f"{task.title}: affinity of the {seen.size} prototypes of {method.title}"
    f" (seed {method.seed}){unseen}.",
    [method.analysis],
    {
      "domain": functools.partial(prototypes.by_domain, method.arrays),
      "class": functools.partial(prototypes.by_class, method.arrays),
    },
  )


def _count(tables: dict, task: Task, method: Method) -> None:
  """Adds the true domains of a run's latent domains to a table."""
  arrays = method.arrays
  _, rows = tables.setdefault(
    task.dataset, (tuple(map(str, arrays["domain_names"])), [])
  )
  place = task.title.removeprefix(f"{data_title(task.dataset)}, ")
  heading = f"{place}, {method.title}, seed {method.seed}"
  rows += [(Cell(heading),), *gallery.contingency(arrays)]


def _tables(tables: dict) -> tuple[Table, ...]:
  return tuple(
    Table(
      f"Source images of each latent domain by true domain, on"
      f" {data_title(dataset)}",
      ("", "images", *domains),
      tuple(rows),
    )
    for dataset, (domains, rows) in tables.items()
  )


def _named(analysed: list[Method]) -> str:
  return " and ".join(f"{m.title} (seed {m.seed})" for m in analysed)
