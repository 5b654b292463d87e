"""Renders a report as a LaTeX file; its tables can be copied into others.

The file needs the packages in `_PREAMBLE`, which all LaTeX distributions have.
"""

import os
import pathlib
import re
from collections.abc import Iterable

from comen_jax.report.document import Cell, Document, Picture, Section, Table

_PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp,amssymb,array,booktabs,graphicx,xcolor}
\usepackage[margin=2cm]{geometry}"""
_SPECIAL = {
  "\\": r"\textbackslash{}",
  "{": r"\{",
  "}": r"\}",
  "$": r"\$",
  "&": r"\&",
  "#": r"\#",
  "%": r"\%",
  "_": r"\_",
  "~": r"\textasciitilde{}",
  "^": r"\textasciicircum{}",
  "<": r"\textless{}",
  ">": r"\textgreater{}",
  "|": r"\textbar{}",
  '"': r"\textquotedbl{}",
  "`": r"\textasciigrave{}",
  "±": r"$\pm$",
  "✓": r"$\checkmark$",
  "†": r"\textdagger{}",
}
_LAST_LATIN = "\u017f"  # pdfLaTeX has no letters after this one.
_LONG_WORD = 30  # Longer words, such as hashes, may break across lines.
_LONG_TEXT = 60  # A column with longer cells is set as paragraphs.
_LONG_HEADING = 90  # A heading that is longer has lines of its own.
_PAGE = 40  # Rows of a table that fit on a page.
_PARAGRAPH = r">{\raggedright\arraybackslash}p{0.7\linewidth}"


def render(document: Document, folder: pathlib.Path) -> str:
  """Returns the text of a file in `folder`; paths of figures start there."""
  blocks = [
    _PREAMBLE,
    rf"\title{{{_escape(document.title)}}}" + "\n" + r"\author{}\date{}",
    r"\begin{document}" + "\n" + r"\maketitle",
  ]
  for about, lines in document.headlines:
    blocks.append(rf"\paragraph{{{_escape(about)}}} " + _lines(lines))
  blocks += map(_escape, document.lead)
  for section in document.sections:
    blocks += _section(section, folder)
  return "\n\n".join([*blocks, r"\end{document}"]) + "\n"


def _section(section: Section, folder: pathlib.Path) -> list[str]:
  return [
    rf"\section{{{_escape(section.title)}}}",
    *map(_escape, section.text),
    *(float_ for table in section.tables for float_ in _floats(table)),
    *(_picture(picture, folder) for picture in section.pictures),
    r"\clearpage",  # LaTeX can hold back only a few floats.
  ]


def _floats(table: Table) -> Iterable[str]:
  """Yields a float, or several if the table does not fit on a page."""
  pages = _pages(table.rows)
  for number, rows in enumerate(pages):
    caption = table.caption + (" (continued)" if number else "")
    notes = table.notes if number == len(pages) - 1 else ()
    yield _float(table._replace(caption=caption, rows=rows, notes=notes))


def _float(table: Table) -> str:
  width = len(table.header)
  header = " & ".join(_cell(Cell(name, bold=True)) for name in table.header)
  lines = []
  for row in table.rows:
    if len(row) == 1 < width:
      if lines:
        lines.append(r"\addlinespace")
      text = rf"\emph{{{_escape(row[0].text)}}}"
      kind = _PARAGRAPH if len(row[0].text) > _LONG_HEADING else "l"
      lines.append(rf"\multicolumn{{{width}}}{{{kind}}}{{{text}}} \\")
    else:
      lines.append(" & ".join(map(_cell, row)) + r" \\")
  notes = [rf"\par {_escape(note)}" for note in table.notes]
  return "\n".join(
    [
      r"\begin{table}[htbp]",
      r"\centering\small",
      rf"\caption{{{_escape(table.caption)}}}",
      # Shrinks tables that are wider than the text; others keep their size.
      r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
      rf"\begin{{tabular}}{{{_columns(table)}}}",
      r"\toprule",
      rf"{header} \\",
      r"\midrule",
      *lines,
      r"\bottomrule",
      r"\end{tabular}}",
      *([r"\par\smallskip\raggedright\footnotesize", *notes] if notes else []),
      r"\end{table}",
    ]
  )


def _columns(table: Table) -> str:
  kinds = []
  for i in range(len(table.header)):
    cells = [row[i] for row in table.rows if len(row) == len(table.header)]
    if any(len(cell.text) > _LONG_TEXT for cell in cells):
      kinds.append(_PARAGRAPH)
    else:
      kinds.append("r" if any(cell.numeric for cell in cells) else "l")
  return "".join(kinds)


def _pages(rows: tuple[tuple[Cell, ...], ...]) -> list[tuple]:
  """Cuts rows into pages, before a heading if there is one."""
  pages = []
  while len(rows) > _PAGE:
    headings = [i for i in range(1, _PAGE + 1) if len(rows[i]) == 1]
    cut = headings[-1] if headings else _PAGE
    pages.append(rows[:cut])
    rows = rows[cut:]
  return [*pages, rows]


def _cell(cell: Cell) -> str:
  text = _escape(cell.text)
  if not text:
    return ""
  if cell.bold:
    text = rf"\textbf{{{text}}}"
  return rf"\textcolor{{gray}}{{{text}}}" if cell.muted else text


def _picture(picture: Picture, folder: pathlib.Path) -> str:
  paths = (os.path.relpath(panel.path, folder) for panel in picture.panels)
  places = [pathlib.Path(path).as_posix() for path in paths]
  lines = -(-len(places) // 2)
  height = f"{0.8 / lines:.2f}"
  return "\n".join(
    [
      r"\begin{figure}[htbp]",
      r"\centering",
      *(
        rf"\includegraphics[width=0.49\linewidth,height={height}\textheight,"
        rf"keepaspectratio]{{{place}}}"
        for place in places
      ),
      rf"\caption{{{_escape(picture.caption)}}}",
      r"\end{figure}",
    ]
  )


def _lines(texts: Iterable[str]) -> str:
  return "\\par\n".join(map(_escape, texts))


def _escape(text: str) -> str:
  """Escapes text; a letter that pdfLaTeX lacks is shown by its code."""
  escaped = " ".join(map(_word, text.split()))
  # After a line break, LaTeX would read these as its options.
  return re.sub(r"^(?=[\[*])", "{}", escaped)


def _word(word: str) -> str:
  letters = [_SPECIAL.get(c, _letter(c)) for c in word]
  if len(word) > _LONG_WORD:
    letters = [
      c + (r"\allowbreak{}" if i % 8 == 7 else "")
      for i, c in enumerate(letters)
    ]
  return re.sub("-(?=-)", "-{}", "".join(letters))  # "--" would be a dash.


def _letter(c: str) -> str:
  if c <= _LAST_LATIN and c.isprintable():
    return c
  return rf"\texttt{{U+{ord(c):04X}}}"
