"""Tables on COMEN itself: its parts, its latent domains and their number M."""

from comen_jax.report import paper
from comen_jax.report.document import Cell, Table
from comen_jax.report.grouping import Comparison, Group
from comen_jax.report.records import Setting
from comen_jax.report.statistics import show, summarise
from comen_jax.report.tables.accuracy import (
  AVERAGE_NOTE,
  MISPRINT_MARK,
  accuracies,
  misprint_notes,
  notes_on,
)
from comen_jax.variants import ABLATION, VARIANTS

# Every comparison has these rows; they alone are no ablation.
_ALWAYS = ("deepall", "deepall_bn", "comen")
_ON, _OFF = "✓", "-"
_RANDOM_NOTE = (
  "Rows without SDNorm do not discover domains: they are drawn at random, as in"
  " the paper's ablation."
)


def without_parts(comparison: Comparison) -> Comparison:
  """Leaves out rows with a part switched off, unless there are no others.

  They belong in the ablation.
  """
  known = (*_ALWAYS, "comen_true_domains")
  whole = [
    g
    for g in comparison.groups
    if g.setting.row not in ABLATION or g.setting.row in known
  ]
  return comparison._replace(groups=whole or comparison.groups)


def ablation(comparison: Comparison) -> Table | None:
  """Shows what each part gives; None if no part was switched off."""
  dataset, title, targets, groups = comparison
  order = {name: i for i, name in enumerate(ABLATION)}
  found = [g for g in groups if g.setting.row in order]
  if all(g.setting.row in _ALWAYS for g in found):
    return None
  found.sort(key=lambda g: order[g.setting.row])  # Stable: M stays in order.
  of_paper = dataset in paper.ABLATION_COLUMNS
  comen = [paper.TABLES[dataset].row(paper.COMEN)] if of_paper else []
  misprints = misprint_notes(dataset, comen)
  lines = []
  for g, cells in zip(found, accuracies(found, targets)):
    control = g.setting.row not in paper.ABLATION
    if control and not any(len(line) == 1 for line in lines):
      lines.append((Cell("Controls that the paper does not have"),))
    printed = paper.ablation_average(dataset, g.setting.row)
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
      f"Paper: average from {paper.SOURCE}, Table {paper.ABLATION_NUMBER}."
      f" {paper.ABLATION_REMARK}"
    )
    notes += misprints
  theirs = ("Paper",) if of_paper else ()
  return Table(
    f"Ablation on {title}: target accuracy (%)",
    ("", "SDNorm", "ProtoGR", "ProtoCCL", *targets, "Average", *theirs, "Runs"),
    tuple(lines),
    tuple(notes),
  )


def latent(comparison: Comparison) -> Table | None:
  """Shows what the latent domains are like; None if no run has any."""
  _, title, targets, groups = comparison
  lines, shown = [], []
  for g in groups:
    sizes = g.values("domain_sizes")
    if not any(sizes.values()):
      continue
    shown.append(g)
    lines.append((Cell(g.title, bold=True),))
    for target in (t for t in targets if sizes.get(t)):
      lines.append((Cell(target), *_latent_cells(g, target)))
  if not lines:
    return None
  return Table(
    f"Latent domains of the source images on {title}, for each target that is"
    " left out",
    (
      "Held-out target", "NMI with domain", "NMI with class",
      "Effective number", "Images per latent domain",
    ),
    tuple(lines),
    (
      "NMI is normalised mutual information. True domains are used to measure"
      " it, not to train. Effective number is exp of the entropy of the mean"
      " assignment; it is at most M.",
      "Images per latent domain: all source images, training and validation,"
      " by the domains that were fixed before the last stage; in the order of"
      " the domains; a slash separates seeds.",
      *([_RANDOM_NOTE] if any(map(_is_random, shown)) else []),
      *notes_on(shown, ()),
    ),
  )  # fmt: skip


def numbers_of_domains(comparison: Comparison) -> Table | None:
  """Shows accuracy by M; None if no row was run with several M."""
  _, title, targets, groups = comparison
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
    f"Number of latent domains M on {title}: target accuracy (%)",
    ("M", *targets, "Average", "Runs"),
    tuple(lines),
    (AVERAGE_NOTE, *notes_on(shown, targets)),
  )


def _parts(row: str) -> tuple[bool, bool, bool]:
  """Whether SDNorm, ProtoGR and ProtoCCL are on."""
  settings = VARIANTS[row].settings
  return (
    settings["norm"] == "sdnorm",
    settings.get("comen.protogr", False),
    settings.get("comen.protoccl", False),
  )


def _is_random(group: Group) -> bool:
  row = group.setting.row
  return row in ABLATION and not _parts(row)[0]


def _latent_cells(group: Group, target: str) -> list[Cell]:
  digits = {"nmi_domain": 3, "nmi_class": 3, "effective_domains": 2}
  texts = [
    show(summarise(group.values(key)[target].values()), digits=n)
    for key, n in digits.items()
  ]
  sizes = sorted(group.values("domain_sizes")[target].items())
  texts.append(
    " / ".join(" + ".join(f"{n:,}" for n in counts) for _, counts in sizes)
  )
  return [Cell(text, numeric=True) for text in texts]


def _without_m(group: Group) -> str:
  """Returns the title of a group without its M."""
  return group.title.replace(f", M = {group.setting.num_domains}", "")
