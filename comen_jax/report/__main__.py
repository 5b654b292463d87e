"""Makes tables and figures of finished runs, beside the paper's tables.

    python -m comen_jax.report W

W is the --workdir of a run or a sweep, a folder of such folders, or published
records (results*.jsonl). Neither model nor data are needed. Figures are drawn
from each run's metrics.jsonl and analysis.npz, where they are.
"""

import argparse
import os
import pathlib
import sys

from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import write_text
from comen_jax.report import grouping, paper
from comen_jax.report import records as reading
from comen_jax.report.document import Document
from comen_jax.report.plots import sections as plots
from comen_jax.report.records import Record
from comen_jax.report.render import html, latex, markdown, plain
from comen_jax.report.tables import sections as tables


def main(argv: list[str]) -> None:
  args = _parser().parse_args(argv)
  records = reading.read(args.folders)
  out = args.out or args.folders[0] / "report"
  # Errors in the records are found here, before anything is written.
  parts = tables.make(records)
  figures = out / "figures"
  _make_folder(figures)
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
  print(f"{_number(records, 'run')}; the page is {out / 'index.html'}")
  print(f"beside it: report.md, report.tex{_figures(document)}")


def _make_folder(folder: pathlib.Path) -> None:
  advice = "give another folder with --out"
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as e:
    raise UserError(f"{folder} cannot be made ({e.strerror}): {advice}") from e
  if not os.access(folder, os.W_OK):
    raise UserError(f"{folder} cannot be written: {advice}")


def _lead(records: list[Record]) -> tuple[str, ...]:
  names = map(grouping.data_title, grouping.by_dataset(records))
  return (
    f"{_number(records, 'finished run')} on {', '.join(names)}. python -m"
    " comen_jax.report computed every value from their records. A cell without"
    " a run is empty.",
    "Each target domain is left out of training. The epoch is chosen by the"
    " accuracy on validation images of the sources, without the target. The"
    f" paper is {paper.SOURCE}; its values are as printed.",
  )


def _figures(document: Document) -> str:
  found = [p for section in document.sections for p in section.pictures]
  if not found:
    return "; no figures, as no run has a metrics.jsonl or an analysis.npz"
  return f" and {_number(found, 'figure')} in figures/"


def _number(things: list, name: str) -> str:
  """Prints "1 run", "2 runs"."""
  return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="python -m comen_jax.report",
    description="Makes tables of finished runs beside the paper's, and figures,"
    " as a web page (index.html), Markdown (report.md) and LaTeX (report.tex).",
    epilog="Neither model nor data are needed. A run that is found twice counts"
    " once. Runs with different epochs, data or pretrained weights are in"
    " different tables.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "folders",
    metavar="W",
    nargs="+",
    type=pathlib.Path,
    help="--workdir of a run or a sweep, a folder of such folders, or published"
    " records (results*.jsonl)",
  )
  parser.add_argument(
    "--out",
    metavar="FOLDER",
    type=pathlib.Path,
    help="folder of the report (default: report/ in the first W)",
  )
  return parser


if __name__ == "__main__":
  with command_line("stopped; run the same command again for the report"):
    # Some terminals cannot show ±; they get a question mark.
    sys.stdout.reconfigure(errors="replace")
    main(sys.argv[1:])
