"""A report before it is Markdown, LaTeX or HTML: sections of tables, figures.

Text is plain; a renderer escapes it. Whatever is unknown is an empty cell.
"""

import pathlib
from typing import NamedTuple


class Cell(NamedTuple):
  """One field of a table.

  Attributes:
    text: plain, such as "62.5 ± 0.4"; "" where there is no run.
    bold: the best of its column, or a row's name that is ours.
    muted: of lesser weight: another's figure, or one that looked at the target.
    numeric: right-aligned, digits of equal width.
  """

  text: str = ""
  bold: bool = False
  muted: bool = False
  numeric: bool = False


class Table(NamedTuple):
  """Equal numbers of cells in `header` and in each of `rows`.

  A row of a single cell is a heading over the rows below it.
  """

  caption: str
  header: tuple[str, ...]
  rows: tuple[tuple[Cell, ...], ...]
  notes: tuple[str, ...] = ()


class Picture(NamedTuple):
  """A PNG file of the report's folder.

  Attributes:
    path: light; what Markdown and LaTeX show.
    caption: says what to see.
    dark: the same for a dark page, if there is one.
  """

  path: pathlib.Path
  caption: str
  dark: pathlib.Path | None = None


class Section(NamedTuple):
  title: str
  text: tuple[str, ...] = ()  # Paragraphs.
  tables: tuple[Table, ...] = ()
  pictures: tuple[Picture, ...] = ()


class Document(NamedTuple):
  title: str
  lead: tuple[str, ...]  # What this is, what it rests on.
  sections: tuple[Section, ...]
