"""Tables on COMEN itself: its parts, its latent domains and their number."""

from comen_jax import variants
from comen_jax.report import paper
from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Group, Setting, data_title
from comen_jax.report.statistics import show, summarise
from comen_jax.report.tables.accuracy import (
  AVERAGE_NOTE,
  MISPRINT_MARK,
  accuracies,
  misprint_notes,
  notes_on,
)

# Rows that a comparison has anyway; they alone make no ablation.
_ALWAYS = ("deepall", "deepall_bn", "comen")
_ON, _OFF = "✓", "-"
_RANDOM_NOTE = (
  "Rows without SDNorm discover nothing: their domains are drawn at random, as"
  " in the paper's ablation."
)


def is_part(row: str) -> bool:
  """Whether a row is of interest to the ablation alone."""
  return row in variants.ABLATION and row not in (
    *_ALWAYS,
    "comen_true_domains",
  )


def ablation(
  dataset: str, groups: list[Group], targets: tuple[str, ...]
) -> Table | None:
  """Which part gives what; None if no part was ever switched off."""
  order = {name: i for i, name in enumerate(variants.ABLATION)}
  found = [g for g in groups if g.setting.row in order]
  if all(g.setting.row in _ALWAYS for g in found):
    return None
  found.sort(key=lambda g: order[g.setting.row])  # Stable: M, epochs as before.
  of_paper = dataset in paper.ABLATION_COLUMNS
  comen = [paper.TABLES[dataset].row(paper.COMEN)] if of_paper else []
  misprints = misprint_notes(dataset, comen)
  lines = []
  for g, cells in zip(found, accuracies(found, targets)):
    control = g.setting.row not in paper.ABLATION
    if control and not any(len(line) == 1 for line in lines):
      lines.append((Cell("Controls, which the paper does not have"),))
    printed = paper.ablation_figure(dataset, g.setting.row)
    text = "" if printed is None else f"{printed:.1f}"
    if g.setting.row == "comen" and misprints:
      text += MISPRINT_MARK
    theirs = [Cell(text, muted=True, numeric=True)] if of_paper else []
    runs = Cell(g.count(targets), numeric=True)
    parts = [Cell(_ON if on else _OFF) for on in _parts(g.setting.row)]
    lines.append((Cell(g.title, bold=True), *parts, *cells, *theirs, runs))
  notes = [AVERAGE_NOTE, *notes_on(found, targets)]
  if of_paper:
    notes.append(
      f"Paper: the average of {paper.SOURCE}, Table {paper.ABLATION_NUMBER}."
      f" {paper.ABLATION_REMARK}"
    )
    notes += misprints
  theirs = ("Paper",) if of_paper else ()
  return Table(
    f"Ablation on {data_title(dataset)}: target accuracy (%)",
    ("", "SDNorm", "ProtoGR", "ProtoCCL", *targets, "Average", *theirs, "Runs"),
    tuple(lines),
    tuple(notes),
  )


def latent(
  dataset: str, groups: list[Group], targets: tuple[str, ...]
) -> Table | None:
  """What the latent domains are like; None if no run has any."""
  lines, shown = [], []
  for g in groups:
    sizes = g.figures("domain_sizes")
    if not any(sizes.values()):
      continue
    shown.append(g)
    lines.append((Cell(g.title, bold=True),))
    for target in (t for t in targets if sizes.get(t)):
      lines.append((Cell(target), *_latent_cells(g, target)))
  if not lines:
    return None
  return Table(
    f"Latent domains on {data_title(dataset)}, of the source images left"
    " when each target is held out",
    (
      "Target", "NMI with domain", "NMI with class", "Effective number",
      "Images per latent domain",
    ),
    tuple(lines),
    (
      "True domains serve to measure NMI (normalised mutual information) here,"
      " not to train. Effective number: exp of the entropy of the mean"
      " assignment, M at most.",
      "Images per latent domain: largest first, seeds apart by a slash.",
      *([_RANDOM_NOTE] if any(map(_is_random, shown)) else []),
      *notes_on(shown, ()),
    ),
  )  # fmt: skip


def numbers_of_domains(
  dataset: str, groups: list[Group], targets: tuple[str, ...]
) -> Table | None:
  """Rows that were run with several M; None if there is none."""
  families: dict[Setting, list[Group]] = {}
  for g in groups:
    same = g.setting._replace(num_domains=0)
    families.setdefault(same, []).append(g)
  lines, shown = [], []
  for family in families.values():
    if len(family) < 2:
      continue
    lines.append((Cell(_without_m(family[0]), bold=True),))
    for g, cells in zip(family, accuracies(family, targets)):
      number = Cell(str(g.setting.num_domains), numeric=True)
      lines.append((number, *cells, Cell(g.count(targets), numeric=True)))
    shown += family
  if not lines:
    return None
  return Table(
    f"Number of latent domains M on {data_title(dataset)}: target accuracy (%)",
    ("M", *targets, "Average", "Runs"),
    tuple(lines),
    (AVERAGE_NOTE, *notes_on(shown, targets)),
  )


def _parts(row: str) -> tuple[bool, bool, bool]:
  """SDNorm, ProtoGR, ProtoCCL: on or off."""
  settings = variants.VARIANTS[row].settings
  return (
    settings["norm"] == "sdnorm",
    settings.get("comen.protogr", False),
    settings.get("comen.protoccl", False),
  )


def _is_random(group: Group) -> bool:
  row = group.setting.row
  return row in variants.VARIANTS and not _parts(row)[0]


def _latent_cells(group: Group, target: str) -> list[Cell]:
  digits = {"nmi_domain": 3, "nmi_class": 3, "effective_domains": 2}
  texts = [
    show(summarise(group.figures(key)[target].values()), digits=n)
    for key, n in digits.items()
  ]
  sizes = sorted(group.figures("domain_sizes")[target].items())
  texts.append(
    " / ".join(
      ", ".join(map(str, sorted(counts, reverse=True))) for _, counts in sizes
    )
  )
  return [Cell(text, numeric=True) for text in texts]


def _without_m(group: Group) -> str:
  """A family's title: its members' without their M."""
  return group.title.replace(f", M = {group.setting.num_domains}", "")
