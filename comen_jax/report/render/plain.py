"""Renders a table, and text beside it, for the terminal."""

import textwrap

from comen_jax.report.document import Table

_WIDTH = 80  # Width of text; tables may be wider.


def render(table: Table) -> str:
  """Returns the caption, aligned columns and the notes below."""
  width = len(table.header)
  lines = [row for row in table.rows if len(row) == width]
  numeric = [any(row[i].numeric for row in lines) for i in range(width)]
  widths = [
    max(len(table.header[i]), *(len(row[i].text) for row in lines), 0)
    for i in range(width)
  ]

  def show(texts: list[str]) -> str:
    cells = [
      text.rjust(w) if n else text.ljust(w)
      for text, w, n in zip(texts, widths, numeric)
    ]
    return "  ".join(cells).rstrip()

  rule = "-" * (sum(widths) + 2 * (width - 1))
  body = [
    show([cell.text for cell in row]) if len(row) == width else row[0].text
    for row in table.rows
  ]
  caption, *notes = map(wrap, [table.caption, *table.notes])
  head = show(list(table.header))
  return "\n".join([caption, rule, head, rule, *body, rule, *notes])


def wrap(text: str) -> str:
  """Breaks a line between words; what follows is indented."""
  return textwrap.fill(text, _WIDTH, subsequent_indent="  ")
