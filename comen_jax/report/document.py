"""A report in no format yet: headlines, sections with tables and figures.

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
    link: path that the text leads to, relative to the report; "" for none.
  """

  text: str = ""
  bold: bool = False
  muted: bool = False
  numeric: bool = False
  link: str = ""


class Table(NamedTuple):
  """A table; `header` and each row have equally many cells.

  A row of a single cell is a heading for the rows below it.
  """

  caption: str
  header: tuple[str, ...]
  rows: tuple[tuple[Cell, ...], ...]
  notes: tuple[str, ...] = ()


class Panel(NamedTuple):
  """A part of a figure, as a PNG file; it is narrow enough for a phone.

  Attributes:
    path: panel for a light page; Markdown and LaTeX show it too.
    dark: the same panel for a dark page, if there is one.
  """

  path: pathlib.Path
  dark: pathlib.Path | None = None


class Picture(NamedTuple):
  """A figure: panels side by side where there is room, and its caption."""

  panels: tuple[Panel, ...]
  caption: str


class Section(NamedTuple):
  """A section of the report; `text` is a tuple of paragraphs."""

  title: str
  text: tuple[str, ...] = ()
  tables: tuple[Table, ...] = ()
  pictures: tuple[Picture, ...] = ()


class Headline(NamedTuple):
  """What came out, in a few sentences; `about` says which runs they are on."""

  about: str
  lines: tuple[str, ...]


class Document(NamedTuple):
  """A whole report.

  Attributes:
    title: title of the report.
    lead: paragraphs between the headlines and the first section.
    sections: sections of the report.
    headlines: what came out, before everything else.
    files: names of the other files of the report, for the page to link to.
  """

  title: str
  lead: tuple[str, ...]
  sections: tuple[Section, ...]
  headlines: tuple[Headline, ...] = ()
  files: tuple[str, ...] = ()
