"""Renders a report as one web page, with style and figures inside it.

The page is light or dark, as the reader's system is. It never scrolls sideways:
a table that is too wide scrolls in its own box, and the panels of a figure
stand below each other where there is no room side by side. A click enlarges a
panel (with a checkbox and CSS, since browsers do not follow links to embedded
data).
"""

import base64
import html
import pathlib
import re
import urllib.parse

from PIL import Image

from comen_jax.report.document import (
  Cell,
  Document,
  Headline,
  Panel,
  Picture,
  Section,
  Table,
)
from comen_jax.report.render.page_style import STYLE

_LONG = 30  # A table with more rows scrolls under its heading.


def render(document: Document) -> str:
  """Returns the text of the page; figures are read from their files."""
  titles = [section.title for section in document.sections]
  anchors = _anchors(titles)
  return "\n".join(
    [
      "<!doctype html>",
      '<html lang="en">',
      "<head>",
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="color-scheme" content="light dark">',
      f"<title>{html.escape(document.title)}</title>",
      f"<style>{STYLE}</style>",
      "</head>",
      "<body>",
      "<header>",
      f"<h1>{_text(document.title)}</h1>",
      *map(_headline, document.headlines),
      *_paragraphs(document.lead),
      *_files(document.files),
      "</header>",
      *_contents(titles, anchors),
      "<main>",
      *(_section(s, a) for s, a in zip(document.sections, anchors)),
      "</main>",
      "</body>",
      "</html>\n",
    ]
  )


def _headline(headline: Headline) -> str:
  return "\n".join(
    [
      '<div class="headline">',
      f"<h2>{_text(headline.about)}</h2>",
      *_paragraphs(headline.lines),
      "</div>",
    ]
  )


def _files(names: tuple[str, ...]) -> list[str]:
  if not names:
    return []
  links = " and ".join(_link(_text(name), name) for name in names)
  return [f"<p>The same report as a file: {links}.</p>"]


def _link(text: str, place: str) -> str:
  # "./": a path may hold a colon, and must not be read as a scheme.
  address = html.escape(f"./{urllib.parse.quote(place)}", quote=True)
  return f'<a href="{address}">{text}</a>'


def _contents(titles: list[str], anchors: list[str]) -> list[str]:
  if not titles:
    return []
  items = (
    f'<li><a href="#{anchor}">{_text(title)}</a></li>'
    for title, anchor in zip(titles, anchors)
  )
  return ['<nav aria-label="Contents"><ol>', *items, "</ol></nav>"]


def _section(section: Section, anchor: str) -> str:
  title = _text(section.title)
  return "\n".join(
    [
      f'<section id="{anchor}">',
      f'<h2><a href="#{anchor}">{title}</a></h2>',
      *_paragraphs(section.text),
      *map(_table, section.tables),
      *map(_picture, section.pictures),
      "</section>",
    ]
  )


def _table(table: Table) -> str:
  label = html.escape(table.caption, quote=True)
  box = "scroll long" if len(table.rows) > _LONG else "scroll"
  looks = (_classes(numeric=_is_numeric(table, n)) for n in _columns(table))
  header = "".join(
    f'<th scope="col"{look}>{_text(name)}</th>'
    for look, name in zip(looks, table.header)
  )
  return "\n".join(
    [
      '<figure class="table">',
      f"<figcaption>{_text(table.caption)}</figcaption>",
      # In the tab order, so that the keyboard can scroll it.
      f'<div class="{box}" tabindex="0" role="region" aria-label="{label}">',
      f"<table><thead><tr>{header}</tr></thead>",
      "<tbody>",
      *(_row(row, len(table.header)) for row in table.rows),
      "</tbody></table></div>",
      *(f'<p class="note">{_text(note)}</p>' for note in table.notes),
      "</figure>",
    ]
  )


def _row(row: tuple[Cell, ...], columns: int) -> str:
  first, *others = row
  if not others:
    return (
      f'<tr class="group"><th scope="rowgroup" colspan="{columns}">'
      f"<span>{_text(first.text)}</span></th></tr>"
    )
  name = f'<th scope="row"{_look(first)}>{_content(first)}</th>'
  cells = (f"<td{_look(cell)}>{_content(cell)}</td>" for cell in others)
  return f"<tr>{name}{''.join(cells)}</tr>"


def _content(cell: Cell) -> str:
  text = _text(cell.text)
  return _link(text, cell.link) if cell.link else text


def _columns(table: Table) -> range:
  return range(len(table.header))


def _is_numeric(table: Table, column: int) -> bool:
  """Whether a column has right-aligned cells."""
  cells = [row[column] for row in table.rows if len(row) > 1]
  return any(cell.numeric for cell in cells)


def _look(cell: Cell) -> str:
  return _classes(
    bold=cell.bold,
    muted=cell.muted,
    numeric=cell.numeric,
    path=bool(cell.link),
  )


def _classes(**flags: bool) -> str:
  names = " ".join(name for name, on in flags.items() if on)
  return f' class="{names}"' if names else ""


def _picture(picture: Picture) -> str:
  count = len(picture.panels)
  alts = [
    f"{picture.caption} Panel {n} of {count}." if count > 1 else picture.caption
    for n in range(1, count + 1)
  ]
  return "\n".join(
    [
      '<figure class="picture">',
      '<div class="panels">',
      *map(_panel, picture.panels, alts),
      "</div>",
      f"<figcaption>{_text(picture.caption)}</figcaption>",
      "</figure>",
    ]
  )


def _panel(panel: Panel, alt: str) -> str:
  alt = html.escape(alt, quote=True)
  dark = (
    '<source media="screen and (prefers-color-scheme: dark)"'
    f' srcset="{_data(panel.dark)}">'
    if panel.dark
    else ""
  )
  width, height = _size(panel.path)
  light = (
    f'<img src="{_data(panel.path)}" width="{width}" height="{height}"'
    f' alt="{alt}">'
  )
  return (
    '<label title="Click to enlarge, click again to go back">'
    f'<input type="checkbox" aria-label="Enlarge: {alt}">'
    f'<span class="scroll"><picture>{dark}{light}</picture></span></label>'
  )


def _size(path: pathlib.Path) -> tuple[int, int]:
  """Returns the size in pixels of the page, 100 per inch of the file.

  A file without a resolution is shown pixel by pixel.
  """
  with Image.open(path) as image:
    dpi, _ = image.info.get("dpi", (100, 100))
    return tuple(round(100 * side / dpi) for side in image.size)


def _data(path: pathlib.Path) -> str:
  encoded = base64.b64encode(path.read_bytes()).decode("ascii")
  return f"data:image/png;base64,{encoded}"


def _paragraphs(texts: tuple[str, ...]) -> list[str]:
  return [f"<p>{_text(text)}</p>" for text in texts]


def _text(text: str) -> str:
  """Escapes text; long hashes and paths may wrap, flags and "5 %" do not."""
  words = re.split(r"(\S{25,})", text)  # Every second item is a long word.
  for n in range(1, len(words), 2):
    words[n] = "\0".join(re.findall(r"[^/=_.]{1,10}[/=_.]*|.", words[n]))
  text = html.escape("".join(words), quote=False).replace("\0", "<wbr>")
  text = re.sub(r"(?<=\d) %", "&nbsp;%", text)
  return re.sub(r"(?<!\S)(--?\w+)", r'<span class="flag">\1</span>', text)


def _anchors(titles: list[str]) -> list[str]:
  """Returns a unique id for each title."""
  anchors: list[str] = []
  for title in titles:
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
    anchor, number = plain, 1
    while anchor in anchors:
      number += 1
      anchor = f"{plain}-{number}"
    anchors.append(anchor)
  return anchors
