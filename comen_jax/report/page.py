"""Makes the whole report: reads records, draws, writes the files."""

import os
import pathlib

from comen_jax.errors import UserError
from comen_jax.files import write_text
from comen_jax.report import damage, grouping, headline, next_steps, paper
from comen_jax.report import records as reading
from comen_jax.report.document import Document, Headline, Section
from comen_jax.report.grouping import Comparison
from comen_jax.report.plots import sections as plots
from comen_jax.report.records import Record
from comen_jax.report.render import html, latex, markdown, plain
from comen_jax.report.tables import sections as tables


def make(folders: list[pathlib.Path], out: pathlib.Path) -> None:
  """Writes the report of the runs in `folders` to the folder `out`."""
  damaged: list[str] = []

  def tell(line: str) -> None:
    damaged.append(line)
    damage.warn(line)

  records = reading.read(folders, tell)
  # Errors in the records are found here, before anything is written.
  compared = grouping.comparisons(records)
  headlines = tuple(map(headline.of, compared))
  parts = tables.make(compared, out)
  figures = out / "figures"
  _make_folder(figures)
  document = Document(
    _title(records),
    _lead(records),
    (
      *_first(records, compared, figures),
      *parts,
      *plots.draw(records, figures, tell),
      *_last(records, damaged),
    ),
    headlines,
    ("report.md", "report.tex"),
  )
  write_text(out / "report.md", markdown.render(document, out))
  write_text(out / "report.tex", latex.render(document, out))
  write_text(out / "index.html", html.render(document))
  for part, said in zip(parts, headlines):
    print(plain.render(part.tables[0]), end="\n\n")
    print(_plain(said), end="\n\n")
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


def _title(records: list[Record]) -> str:
  if len(records) > 1:
    return "COMEN in JAX: results"
  return f"COMEN in JAX: run {records[0].run}"


def _lead(records: list[Record]) -> tuple[str, ...]:
  names = map(grouping.data_title, grouping.by_dataset(records))
  return (
    f"{_number(records, 'finished run')} on {', '.join(names)}. python -m"
    " comen_jax.report computed every value from their records. A cell without"
    " a run is empty.",
    "Each target domain is held out of training. The epoch is chosen by the"
    " accuracy on validation images of the sources, without the target. The"
    f" paper is {paper.SOURCE}; its values are as printed.",
  )


def _first(
  records: list[Record], compared: list[Comparison], figures: pathlib.Path
) -> list[Section]:
  """Returns what is above the tables: one dot alone would show nothing."""
  if len(records) == 1:
    return [next_steps.of(records)]
  return [plots.draw_seeds(compared, figures)]


def _last(records: list[Record], damaged: list[str]) -> list[Section]:
  """Returns what is below the figures."""
  found = [next_steps.of(records)] if len(records) > 1 else []
  if damaged:
    found.append(Section("Files that could not be read", tuple(damaged)))
  return found


def _plain(said: Headline) -> str:
  return "\n".join(map(plain.wrap, [f"{said.about}:", *said.lines]))


def _figures(document: Document) -> str:
  found = [p for section in document.sections for p in section.pictures]
  if not found:
    return "; no figures, as the run has no metrics.jsonl or analysis.npz"
  return f" and {_number(found, 'figure')} in figures/"


def _number(things: list, name: str) -> str:
  """Prints "1 run", "2 runs"."""
  return f"{len(things)} {name}{'s' * (len(things) != 1)}"
