"""The one screen of a process: lines above, a display of bars below them.

Without a terminal there is no screen, and lines are printed as they are.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.console import (
  Console,
  ConsoleOptions,
  RenderableType,
  RenderResult,
)
from rich.progress import Progress, ProgressColumn
from rich.text import Text

_REFRESHES = 4  # Per second, while bars are shown.


class _Screen(Console):
  """A console that leaves the cursor visible.

  A process that is killed could not bring a hidden one back.
  """

  def show_cursor(self, show: bool = True) -> bool:
    return False


class _Bars(Progress):
  """Bars that leave room for ^C, which the terminal itself writes after them.

  In the last column it would begin a new line, and the bar would stay.
  """

  def get_renderables(self) -> Iterable[RenderableType]:
    yield from map(_Narrow, super().get_renderables())


class _Narrow:
  """Something that is three columns narrower than the screen."""

  def __init__(self, inner: RenderableType):
    self._inner = inner

  def __rich_console__(
    self, console: Console, options: ConsoleOptions
  ) -> RenderResult:
    narrow = options.update_width(max(1, options.max_width - len("^C") - 1))
    yield from console.render(self._inner, narrow)


_active: list[Console] = []  # The screen with bars, if there are any.


def find() -> Console | None:
  """Returns the screen, or None without a terminal that can move its cursor.

  It is standard output, or standard error if that alone is a terminal.
  """
  for file in (sys.stdout, sys.stderr):
    if file.isatty():
      screen = _Screen(file=file, force_terminal=True, highlight=False)
      return None if screen.is_dumb_terminal else screen
  return None


def has_bars() -> bool:
  """Whether bars are shown now: a screen has room for one display."""
  return bool(_active)


def width() -> int | None:
  """Number of columns of a line on standard output; None without a limit."""
  if not sys.stdout.isatty():
    return None
  screen = _active[0] if _active else find()
  return screen.width if screen else None


def write(text: str, file: TextIO | None = None, style: str = "") -> None:
  """Prints text on `file`, or standard output, above any bars."""
  file = file or sys.stdout
  screen = _active[0] if _active else find() if style else None
  if screen and file.isatty():
    screen.print(Text(text, style), soft_wrap=True)
  else:
    print(text, file=file, flush=True)


@contextlib.contextmanager
def bars(screen: Console, *columns: ProgressColumn) -> Iterator[Progress]:
  """Shows bars with these columns; they are gone after the block."""
  progress = _Bars(
    *columns,
    console=screen,
    transient=True,
    expand=True,
    refresh_per_second=_REFRESHES,
    # What libraries print comes above the bars, but never into another file.
    redirect_stdout=sys.stdout.isatty(),
    redirect_stderr=sys.stderr.isatty(),
  )
  _active.append(screen)
  try:
    with progress:
      yield progress
  finally:
    _active.remove(screen)
