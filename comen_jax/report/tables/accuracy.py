"""Tables of accuracy: our results, the paper's, and the rules of selection.

Values are target accuracies in per cent. A cell without a run is empty.
"""

from comen_jax.report import benchmarks, paper, published
from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import LABELS_NOTE, Comparison, Group
from comen_jax.report.statistics import Summary, average, percent, summarise
from comen_jax.variants import title_of

BEST_VALIDATION = "target_accuracy"
_ORACLE, _ORACLE_TITLE = "target_accuracy_oracle", "oracle (uses the target)"
_RULES = {
  "best validation": BEST_VALIDATION,
  "last epoch": "target_accuracy_last",
  _ORACLE_TITLE: _ORACLE,
}
AVERAGE_NOTE = (
  "± is the sample standard deviation over seeds (ddof 1); a single run has"
  " none. The average is taken over all targets of a seed, then over the seeds"
  " that have every target. It is empty if a target has no run."
)
_RUNS_NOTE = (
  "Numbers in brackets are the runs per target, where targets have different"
  " numbers of runs."
)
_ONE_SEED_NOTE = (
  "One seed: no conclusion. A column has a best value in bold only if every row"
  " has at least two seeds there."
)
_BOLD_NOTE = (
  "Bold is the highest mean of a column. The paired differences show whether it"
  " really differs from another row."
)
_ORACLE_NOTE = (
  "The oracle chooses the epoch by the target's own accuracy, which is unknown"
  " in practice: it shows how much a better rule could gain, and is not a"
  " result."
)
MISPRINT_MARK = "*"


def main(comparison: Comparison) -> Table:
  """Shows our accuracy by target, then what was published of these methods."""
  dataset, title, targets, groups = comparison
  rows = [
    (Cell(g.title, bold=True), *cells, Cell(g.count(targets), numeric=True))
    for g, cells in zip(groups, accuracies(groups, targets))
  ]
  notes = [AVERAGE_NOTE, *notes_on(groups, targets)]
  if dataset in paper.TABLES:
    table = paper.TABLES[dataset]
    ours = [g.setting.row for g in groups]
    printed = published.in_paper(dataset, ours)
    source = f"Paper ({paper.SOURCE}, Table {table.number})"
    elsewhere, sources = _elsewhere(dataset, ours, targets)
    rows = [
      (Cell("Ours"),),
      *rows,
      (Cell(source),),
      *(_printed(dataset, row, targets, more=1) for row in printed),
      *elsewhere,
    ]
    notes += misprint_notes(dataset, printed) + sources
    if any(published.method_of(row) not in ours for row in ours):
      notes.append(published.NORM_NOTE)
    notes += _likeness(comparison)
  return Table(
    f"Target accuracy (%) on {title}: mean ± standard deviation over seeds,"
    " epoch chosen by source validation",
    ("", *targets, "Average", "Runs"),
    tuple(rows),
    tuple(notes),
  )


def of_paper(dataset: str, targets: tuple[str, ...]) -> Table:
  """Shows everything that the paper printed for a data set."""
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
    f"The paper's values on {table.title} ({paper.SOURCE}, Table"
    f" {table.number})",
    ("", *targets, "Average"),
    tuple(rows),
    (
      *misprint_notes(dataset, every),
      *paper.REMARKS.get(dataset, ()),
      f"Names of the paper's columns: {renamed}.",
    ),
  )


def selection(comparison: Comparison) -> Table:
  """Shows accuracy under each rule that chooses an epoch of a run."""
  _, title, targets, groups = comparison
  rows = []
  rules = dict(_RULES)
  if not any(any(g.values(_ORACLE).values()) for g in groups):
    del rules[_ORACLE_TITLE]  # No run was asked for it.
  for g in groups:
    values = [g.values(key) for key in (*rules.values(), "val_accuracy")]
    rows.append((Cell(g.title, bold=True),))
    for target in (t for t in targets if t in g.runs):
      found = [summarise(f.get(target, {}).values()) for f in values]
      rows.append((Cell(target), *_by_rule(found, rules)))
    found = [average(f, targets) for f in values]
    rows.append((Cell("Average"), *_by_rule(found, rules)))
  return Table(
    f"Rules of selection on {title}: target accuracy (%) of the epoch that each"
    " rule chooses",
    ("Target", *rules, "source validation"),
    tuple(rows),
    (
      "All other tables use best validation.",
      *([_ORACLE_NOTE] if _ORACLE_TITLE in rules else []),
      "Source validation is the accuracy (%) on held-out source images at the"
      " epoch that best validation chooses.",
      *notes_on(groups, ()),
    ),
  )


def accuracies(
  groups: list[Group], targets: tuple[str, ...]
) -> list[list[Cell]]:
  """Returns a row of cells per group: its targets, then their average.

  The best value of a column is bold, if every group has at least two seeds
  there. Groups that use domain labels know more, so they do not count for it.
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
    single = any(s and s.std is None for s in found)
    best = max(rivals) if len(rivals) > 1 and not single else None
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
  """Explains the marks in the rows of these groups."""
  notes = []
  if targets and any("(" in g.count(targets) for g in groups):
    notes.append(_RUNS_NOTE)
  seeds = [len(g.runs[t]) for g in groups for t in targets if t in g.runs]
  if len(groups) > 1 and 1 in seeds:
    notes.append(_ONE_SEED_NOTE)
  elif targets and len(groups) > 1:
    notes.append(_BOLD_NOTE)
  if any(g.setting.domain_labels for g in groups):
    notes.append(LABELS_NOTE)
  return notes


def misprint_notes(dataset: str, rows: list[paper.PaperRow]) -> list[str]:
  """Explains the mark at a printed average."""
  texts = [paper.misprint(dataset, row) for row in rows]
  return [f"{MISPRINT_MARK} {text}" for text in texts if text]


def _summary(
  group: Group, target: str | None, targets: tuple[str, ...]
) -> Summary | None:
  values = group.values(BEST_VALIDATION)
  if target is None:
    return average(values, targets)
  return summarise(values.get(target, {}).values())


def _by_rule(found: list[Summary | None], rules: dict[str, str]) -> list[Cell]:
  muted = [key == _ORACLE for key in rules.values()] + [False]
  return [Cell(percent(s), muted=m, numeric=True) for s, m in zip(found, muted)]


def _printed(
  dataset: str, row: paper.PaperRow, targets: tuple[str, ...], more: int = 0
) -> tuple[Cell, ...]:
  """Returns a row of the paper, followed by `more` empty cells."""
  mark = MISPRINT_MARK if paper.misprint(dataset, row) else ""
  texts = _by_target(dataset, row.values, targets)
  texts += [f"{row.average:.1f}{mark}"] + [""] * more
  cells = (Cell(text, muted=True, numeric=True) for text in texts)
  return (Cell(row.method, muted=True), *cells)


def _elsewhere(
  dataset: str, rows: list[str], targets: tuple[str, ...]
) -> tuple[list[tuple[Cell, ...]], list[str]]:
  """Returns rows of values published elsewhere, and notes on their sources."""
  found = published.others(dataset, rows)
  if not found:
    return [], []
  lines, notes = [(Cell("Published elsewhere"),)], []
  for number, (row, value) in enumerate(found, 1):
    texts = _by_target(dataset, value.values, targets)
    doubt = "" if value.verified else ", not verified"
    name = f"{title_of(row)} [{number}]{doubt}"
    cells = [*texts, f"{value.mean:.1f}", ""]
    lines.append(
      (
        Cell(name, muted=True),
        *(Cell(text, muted=True, numeric=True) for text in cells),
      )
    )
    remark = f": {value.remark}" if value.remark else ""
    notes.append(f"[{number}] {value.source}{remark}{doubt}.")
  if not all(value.verified for _, value in found):
    notes.append(published.UNVERIFIED_NOTE)
  return lines, notes


def _by_target(
  dataset: str, values: tuple[float, ...], targets: tuple[str, ...]
) -> list[str]:
  """Prints values in the order of `targets`; "" where there is none."""
  by_target = dict(zip(paper.TABLES[dataset].columns, values))
  return [f"{by_target[t]:.1f}" if t in by_target else "" for t in targets]


def _likeness(comparison: Comparison) -> list[str]:
  """Says what a reader must know before comparing ours with the paper's."""
  setting = comparison.groups[0].setting
  notes = [
    f"Our runs have {setting.epochs} epochs, on the data with manifest"
    f" {setting.manifest[:12]}. The paper's have {paper.EPOCHS} epochs, on the"
    " authors' copy of the data. Compare them only if epochs and images agree."
  ]
  counts = {t: _counts(comparison, t) for t in comparison.targets}
  if other := [f"{t} {text}" for t, text in counts.items() if text]:
    notes.append(
      "Our targets do not have the published number of images:"
      f" {'; '.join(other)}. The paper's values are for other test images."
    )
  return notes


def _counts(comparison: Comparison, target: str) -> str:
  """Returns a target's numbers of images if they are not the published one."""
  found = sorted(
    {
      r.measured["target_images"]
      for r in comparison.records
      if r.measured["target"] == target
    }
  )
  if not found:
    return ""
  published = benchmarks.published_images(comparison.dataset, target)
  if found == [published]:
    return ""
  return f"{', '.join(f'{n:,}' for n in found)} of {published:,}"
