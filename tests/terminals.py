"""A terminal for tests: it keeps what is written, and has a fixed width."""

import io
import re
import sys

from rich.progress import Progress

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
  """A file that says that it is a terminal."""

  def isatty(self) -> bool:
    return True

  def lines(self) -> list[str]:
    """All lines that were written, bars as often as they were drawn."""
    text = _CONTROL.sub("", self.getvalue())
    return [line.rstrip() for line in re.split(r"[\r\n]", text)]


def use(monkeypatch, width: int, streams=("stdout",)) -> Terminal:
  """Makes standard output a terminal with so many columns."""
  terminal = Terminal()
  for name in streams:
    monkeypatch.setattr(sys, name, terminal)
  monkeypatch.setenv("COLUMNS", str(width))
  monkeypatch.setenv("TERM", "xterm")
  update = Progress.update

  def update_and_draw(bars: Progress, *arguments, **changes) -> None:
    update(bars, *arguments, **changes)
    bars.refresh()

  # Otherwise a clock draws them, four times a second.
  monkeypatch.setattr(Progress, "update", update_and_draw)
  return terminal
