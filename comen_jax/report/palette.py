"""Colours of the page and its figures, light and dark."""

from typing import NamedTuple


class Palette(NamedTuple):
  """Colours of a page.

  Text colours (ink, muted, accent) have a contrast of at least 4.5 to 1 on
  `background` and `raised`.
  """

  background: str
  raised: str  # Behind headings of tables and every other stage of a curve.
  ink: str
  muted: str
  line: str
  accent: str


LIGHT = Palette(
  background="#ffffff",
  raised="#f3f5f7",
  ink="#1b1f24",
  muted="#5f6873",
  line="#d5dae0",
  accent="#0b5fa5",
)
DARK = Palette(
  background="#14171b",
  raised="#1e2329",
  ink="#e4e7eb",
  muted="#9aa4b0",
  line="#39414b",
  accent="#7cbcf2",
)
