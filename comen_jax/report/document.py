"""A report in no format yet: sections with text, tables and figures.

All text is plain; a renderer escapes it.
"""

import pathlib
from typing import NamedTuple


class Cell(NamedTuple):
  """A cell of a table.

  Attributes:
    text: plain text, such as "62.5 ± 0.4"; "" if the value is unknown.
    bold: whether to stress the text: the best value of a column, our rows.
    muted: whether to tone it down: the paper's values, values that used the
      target.
    numeric: whether to align it right, with digits of equal width.
  """

  text: str = ""
  bold: bool = False
  muted: bool = False
  numeric: bool = False


class Table(NamedTuple):
  """A table; `header` and each row have equally many cells.

  A row of a single cell is a heading for the rows below it.
  """

  caption: str
  header: tuple[str, ...]
  rows: tuple[tuple[Cell, ...], ...]
  notes: tuple[str, ...] = ()


class Picture(NamedTuple):
  """A figure of the report, as PNG files.

  Attributes:
    path: figure for a light page; Markdown and LaTeX show it too.
    caption: text that says what the figure shows.
    dark: the same figure for a dark page, if there is one.
  """

  path: pathlib.Path
  caption: str
  dark: pathlib.Path | None = None


class Section(NamedTuple):
  """A section of the report; `text` is a tuple of paragraphs."""

  title: str
  text: tuple[str, ...] = ()
  tables: tuple[Table, ...] = ()
  pictures: tuple[Picture, ...] = ()


class Document(NamedTuple):
  """A whole report; `lead` are the paragraphs before the first section."""

  title: str
  lead: tuple[str, ...]
  sections: tuple[Section, ...]
