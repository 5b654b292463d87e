"""Tables of accuracy: ours beside the paper's, and rule beside rule.

Figures are target accuracies in per cent. A cell with no run is empty.
"""

from comen_jax.data import BENCHMARKS
from comen_jax.report import paper
from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import LABELS_NOTE, Group, data_title
from comen_jax.report.records import Record
from comen_jax.report.statistics import (
  Summary,
  average,
  percent,
  summarise,
)

BEST_VALIDATION = "target_accuracy"
_RULES = {
  "best validation": BEST_VALIDATION,
  "last epoch": "target_accuracy_last",
  "oracle (looks at the target)": "target_accuracy_oracle",
}
_ORACLE = "target_accuracy_oracle"
AVERAGE_NOTE = (
  "± is the sample deviation over seeds (ddof 1), absent for a single run."
  " The average is taken over all targets within a seed, then over the seeds"
  " that have every target; it is empty where a target has no run."
)
_RUNS_NOTE = "Runs in brackets: per target, where they are not equally many."
MISPRINT_MARK = "*"


def main(dataset: str, groups: list[Group], targets: tuple[str, ...]) -> Table:
  """Ours by target, then the paper's DeepAll and COMEN, if it has them."""
  rows = [
    (Cell(g.title, bold=True), *cells, Cell(g.count(targets), numeric=True))
    for g, cells in zip(groups, accuracies(groups, targets))
  ]
  notes = [AVERAGE_NOTE, *notes_on(groups, targets)]
  if dataset in paper.TABLES:
    table = paper.TABLES[dataset]
    printed = [table.row(paper.DEEPALL), table.row(paper.COMEN)]
    source = f"The paper's ({paper.SOURCE}, Table {table.number})"
    rows = [
      (Cell("Ours"),),
      *rows,
      (Cell(source),),
      *(_printed(dataset, row, targets, more=1) for row in printed),
    ]
    notes += misprint_notes(dataset, printed) + _likeness(groups, targets)
  return Table(
    f"Target accuracy (%) on {data_title(dataset)}, epoch chosen by source"
    " validation: mean ± deviation over seeds",
    ("", *targets, "Average", "Runs"),
    tuple(rows),
    tuple(notes),
  )


def of_paper(dataset: str, targets: tuple[str, ...]) -> Table:
  """All that the paper printed of a data set."""
  table = paper.TABLES[dataset]
  rows = []
  for title, printed in (
    ("With domain supervision", table.supervised),
    ("Without domain supervision", table.unsupervised),
  ):
    rows.append((Cell(title),))
    rows += [_printed(dataset, row, targets) for row in printed]
  every = [*table.supervised, *table.unsupervised]
  renamed = ", ".join(f"{c} is {t}" for t, c in table.columns.items())
  return Table(
    f"The paper's figures on {table.title} ({paper.SOURCE}, Table"
    f" {table.number})",
    ("", *targets, "Average"),
    tuple(rows),
    (
      *misprint_notes(dataset, every),
      *paper.REMARKS.get(dataset, ()),
      f"Of the paper's columns, {renamed}.",
    ),
  )


def selection(
  dataset: str, groups: list[Group], targets: tuple[str, ...]
) -> Table:
  """The same runs under each rule that chooses an epoch."""
  rows = []
  for g in groups:
    figures = [g.figures(key) for key in (*_RULES.values(), "val_accuracy")]
    rows.append((Cell(g.title, bold=True),))
    for target in (t for t in targets if t in g.runs):
      found = [summarise(f.get(target, {}).values()) for f in figures]
      rows.append((Cell(target), *_by_rule(found)))
    found = [average(f, targets) for f in figures]
    rows.append((Cell("Average"), *_by_rule(found)))
  return Table(
    f"Rules of selection on {data_title(dataset)}: target accuracy (%) of the"
    " epoch that each chooses",
    ("Target", *_RULES, "source validation"),
    tuple(rows),
    (
      "Best validation is the rule of all other tables. The oracle chooses the"
      " epoch by the target's own accuracy, which nobody has in practice: it"
      " bounds what selection could gain and is no result.",
      "Source validation: accuracy (%) on held-out source images at the best"
      " epoch.",
      *notes_on(groups, ()),
    ),
  )


def accuracies(
  groups: list[Group], targets: tuple[str, ...]
) -> list[list[Cell]]:
  """Per group its targets and their average; the best of a column is bold.

  Groups that use domain labels know more and do not compete.
  """
  columns = []
  for target in (*targets, None):
    found = [_summary(g, target, targets) for g in groups]
    printed = [s and round(100 * s.mean, 1) for s in found]
    rivals = [
      p
      for p, g in zip(printed, groups)
      if p is not None and not g.setting.domain_labels
    ]
    best = max(rivals) if len(rivals) > 1 else None
    columns.append(
      [
        Cell(
          percent(s),
          bold=p is not None and p == best and not g.setting.domain_labels,
          numeric=True,
        )
        for s, p, g in zip(found, printed, groups)
      ]
    )
  return [list(row) for row in zip(*columns)]


def notes_on(groups: list[Group], targets: tuple[str, ...]) -> list[str]:
  """What the marks in these groups' lines mean."""
  notes = []
  if targets and any("(" in g.count(targets) for g in groups):
    notes.append(_RUNS_NOTE)
  if any(g.setting.domain_labels for g in groups):
    notes.append(LABELS_NOTE)
  return notes


def misprint_notes(dataset: str, rows: list[paper.PaperRow]) -> list[str]:
  """What the mark at a printed average means."""
  told = [paper.misprint(dataset, row) for row in rows]
  return [f"{MISPRINT_MARK} {text}" for text in told if text]


def _summary(
  group: Group, target: str | None, targets: tuple[str, ...]
) -> Summary | None:
  figures = group.figures(BEST_VALIDATION)
  if target is None:
    return average(figures, targets)
  return summarise(figures.get(target, {}).values())


def _by_rule(found: list[Summary | None]) -> list[Cell]:
  muted = [key == _ORACLE for key in _RULES.values()] + [False]
  return [Cell(percent(s), muted=m, numeric=True) for s, m in zip(found, muted)]


def _printed(
  dataset: str, row: paper.PaperRow, targets: tuple[str, ...], more: int = 0
) -> tuple[Cell, ...]:
  """A line of the paper, and `more` empty cells."""
  by_target = dict(zip(paper.TABLES[dataset].columns, row.figures))
  mark = MISPRINT_MARK if paper.misprint(dataset, row) else ""
  texts = [f"{by_target[t]:.1f}" if t in by_target else "" for t in targets]
  texts += [f"{row.average:.1f}{mark}"] + [""] * more
  figures = (Cell(text, muted=True, numeric=True) for text in texts)
  return (Cell(row.method, muted=True), *figures)


def _likeness(groups: list[Group], targets: tuple[str, ...]) -> list[str]:
  """What must be known before ours are held against the paper's."""
  by_seed = [runs for g in groups for runs in g.runs.values()]
  records = [record for runs in by_seed for record in runs.values()]
  epochs = " and ".join(map(str, sorted({g.setting.epochs for g in groups})))
  manifests = sorted({g.setting.manifest[:12] for g in groups})
  notes = [
    f"Ours are of {epochs} epochs, on the data of manifest"
    f" {' and '.join(manifests)}; the paper's of {paper.EPOCHS} epochs, on its"
    " own copy. They are alike only where epochs and pictures are."
  ]
  counts = {t: _counts(records, t) for t in targets}
  if other := [f"{t} {text}" for t, text in counts.items() if text]:
    notes.append(
      "Ours are not of the published number of images:"
      f" {'; '.join(other)}. The paper's figures are of other test images."
    )
  return notes


def _counts(records: list[Record], target: str) -> str:
  """A target's numbers of images where they are not the published one."""
  measured = [r.measured for r in records if r.measured["target"] == target]
  if not measured:
    return ""
  count = BENCHMARKS[measured[0]["dataset"]].published_domains[target]
  published = count if isinstance(count, int) else sum(count)
  found = sorted({m["target_images"] for m in measured})
  if found == [published]:
    return ""
  return f"{', '.join(f'{n:,}' for n in found)} of {published:,}"
