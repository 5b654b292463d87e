"""Tables and figures of finished runs, beside the paper's.

    python -m comen_jax.report W

W is the --workdir of a sweep, or a folder of published records. Needs neither
model nor data: only results*.jsonl and, for figures, each run's analysis.npz.
"""

import argparse
import pathlib
import sys

from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import write_text
from comen_jax.report import grouping, paper
from comen_jax.report import records as reading
from comen_jax.report.document import Document, Section
from comen_jax.report.plots import sections as plots
from comen_jax.report.records import Record
from comen_jax.report.render import html, latex, markdown, plain
from comen_jax.report.tables import accuracy, comen
from comen_jax.report.tables.origin import origin


def main(argv: list[str]) -> None:
  args = _parser().parse_args(argv)
  records = reading.read(args.folders)
  out = args.out or args.folders[0] / "report"
  # All that can be wrong with the records is found before anything is written.
  parts = _sections(records)
  figures = out / "figures"
  try:
    figures.mkdir(parents=True, exist_ok=True)
  except OSError as e:
    raise UserError(
      f"{figures} cannot be made ({e.strerror}): give another --out"
    ) from e
  document = Document(
    "COMEN in JAX: results",
    _lead(records),
    (*parts, *plots.draw(records, figures)),
  )
  write_text(out / "report.md", markdown.render(document, out))
  write_text(out / "report.tex", latex.render(document, out))
  write_text(out / "index.html", html.render(document))
  for part in parts:
    print(plain.render(part.tables[0]), end="\n\n")
  print(f"{len(records)} runs; the page is {out / 'index.html'}")
  print(f"beside it: report.md, report.tex{_pictures(document)}")


def _lead(records: list[Record]) -> tuple[str, ...]:
  names = map(grouping.data_title, grouping.by_dataset(records))
  return (
    f"{len(records)} finished runs on {', '.join(names)}. Every figure is"
    " computed from their records by python -m comen_jax.report; a cell with no"
    " run is empty.",
    "Each target is left out of training in turn; the epoch is chosen by"
    " validation on the sources, without looking at the target. The paper is"
    f" {paper.SOURCE}; its figures are as printed there.",
  )


def _sections(records: list[Record]) -> list[Section]:
  """A section of tables per data set, the main one first."""
  return [
    _section(dataset, own)
    for dataset, own in grouping.by_dataset(records).items()
  ]


def _section(dataset: str, records: list[Record]) -> Section:
  groups = grouping.group(records)
  targets = grouping.targets_of(records)
  # Switched-off parts stand in the ablation, which has all of these columns.
  whole = [g for g in groups if not comen.is_part(g.setting.row)]
  found = [
    accuracy.main(dataset, whole or groups, targets),
    comen.ablation(dataset, groups, targets),
    comen.numbers_of_domains(dataset, groups, targets),
    accuracy.selection(dataset, groups, targets),
    comen.latent(dataset, groups, targets),
    accuracy.of_paper(dataset, targets) if dataset in paper.TABLES else None,
    origin(dataset, records),
  ]
  return Section(
    grouping.data_title(dataset),
    tables=tuple(table for table in found if table),
  )


def _pictures(document: Document) -> str:
  count = sum(len(section.pictures) for section in document.sections)
  if not count:
    return "; no figures, as no run's analysis.npz is there"
  return f" and {count} figures in figures/"


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="python -m comen_jax.report",
    description="Tables of finished runs beside the paper's, and figures, as"
    " one web page (index.html), Markdown (report.md) and LaTeX (report.tex).",
    epilog="Neither model nor data are needed. Runs that stand in several files"
    " count once; runs of different epochs, data or numbers of latent domains"
    " are never averaged together.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "folders",
    metavar="W",
    nargs="+",
    type=pathlib.Path,
    help="--workdir of a sweep, or a folder with its results*.jsonl",
  )
  parser.add_argument(
    "--out",
    metavar="FOLDER",
    type=pathlib.Path,
    help="where the report goes (default: report/ in the first W)",
  )
  return parser


if __name__ == "__main__":
  with command_line("stopped; the same command makes the report anew"):
    # A terminal that cannot show ± shows a question mark.
    sys.stdout.reconfigure(errors="replace")
    main(sys.argv[1:])
