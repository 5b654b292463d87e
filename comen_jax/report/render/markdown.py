"""Renders a report as GitHub's Markdown."""

import os
import pathlib
import re
import urllib.parse

from comen_jax.report.document import Cell, Document, Picture, Section, Table


def render(document: Document, folder: pathlib.Path) -> str:
  """Returns the text of a file in `folder`; links to figures start there."""
  blocks = [f"# {_escape(document.title)}"]
  for about, lines in document.headlines:
    blocks += [f"**{_escape(about)}**", "\n".join(map(_item, lines))]
  blocks += map(_paragraph, document.lead)
  for section in document.sections:
    blocks += _section(section, folder)
  return "\n\n".join(blocks) + "\n"


def _section(section: Section, folder: pathlib.Path) -> list[str]:
  blocks = [f"## {_escape(section.title)}", *map(_paragraph, section.text)]
  for table in section.tables:
    blocks += _table(table)
  return blocks + [_picture(picture, folder) for picture in section.pictures]


def _table(table: Table) -> list[str]:
  """Pads the cells, so that the source is readable too."""
  width = len(table.header)
  lines = [[_escape(name) for name in table.header]]
  for row in table.rows:
    if len(row) == 1 < width:
      # Markdown has no cell that spans columns.
      lines.append([f"***{_escape(row[0].text)}***"] + [""] * (width - 1))
    else:
      lines.append(list(map(_cell, row)))
  numeric = [
    any(row[i].numeric for row in table.rows if len(row) == width)
    for i in range(width)
  ]
  widths = [max(3, *(len(line[i]) for line in lines)) for i in range(width)]
  lines.insert(1, ["-" * (w - n) + ":" * n for w, n in zip(widths, numeric)])
  align = lambda text, i: (
    text.rjust(widths[i]) if numeric[i] else text.ljust(widths[i])
  )
  text = "\n".join(
    f"| {' | '.join(align(text, i) for i, text in enumerate(line))} |"
    for line in lines
  )
  notes = "\n".join(map(_item, table.notes))
  return [f"**{_escape(table.caption)}**", text, *([notes] if notes else [])]


def _cell(cell: Cell) -> str:
  text = _escape(cell.text)
  if not text:
    return ""
  mark = "**" if cell.bold else "*" if cell.muted else ""
  text = f"{mark}{text}{mark}"
  return f"[{text}]({urllib.parse.quote(cell.link)})" if cell.link else text


def _picture(picture: Picture, folder: pathlib.Path) -> str:
  caption = _escape(picture.caption)
  paths = (os.path.relpath(panel.path, folder) for panel in picture.panels)
  places = (pathlib.Path(path).as_posix() for path in paths)
  images = "\n".join(f"![{caption}]({urllib.parse.quote(p)})" for p in places)
  return f"{images}\n\n*{caption}*"


def _item(text: str) -> str:
  return f"- {_paragraph(text)}"


def _paragraph(text: str) -> str:
  """Escapes text at the start of a line, where a mark could begin a list."""
  return re.sub(r"^(\d*)([-+.)])", r"\1\\\2", _escape(text))


def _escape(text: str) -> str:
  """Escapes marks; an underscore within a word needs no escape."""
  text = " ".join(text.split())
  text = re.sub(r"([\\|*`<>\[\]#~$])", r"\\\1", text)
  text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
  return re.sub(r"&(?=#?\w+;)", "&amp;", text)
