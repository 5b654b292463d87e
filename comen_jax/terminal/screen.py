"""The one screen of a process: lines above, a display of bars below them.

Without a terminal there is no screen, and lines are printed as they are.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from rich.console import (
  Console,
  ConsoleOptions,
  RenderableType,
  RenderResult,
)
from rich.progress import Progress, ProgressColumn
from rich.text import Text

Stream = Literal["stdout", "stderr"]
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


class _Shown(NamedTuple):
  """A screen that has bars, and the streams that are terminals."""

  screen: Console
  terminals: tuple[Stream, ...]


_shown: list[_Shown] = []  # At most one.


def find(streams: Sequence[Stream] = ("stdout", "stderr")) -> Console | None:
  """Returns the screen, or None without a terminal that can move its cursor.

  Args:
    streams: the first of them that is a terminal is the screen. Lines that go
      to standard output want bars there or nowhere: `| tee` would mix them.
  """
  for name in [name for name in streams if name in _terminals()]:
    screen = _Screen(
      file=getattr(sys, name), force_terminal=True, highlight=False
    )
    return None if screen.is_dumb_terminal else screen
  return None


def has_bars() -> bool:
  """Whether bars are shown now: a screen has room for one display."""
  return bool(_shown)


def width() -> int | None:
  """Number of columns of a line on standard output; None without a limit."""
  if "stdout" not in _terminals():
    return None
  screen = _shown[0].screen if _shown else find(["stdout"])
  return screen.width if screen else None


def write(text: str, stream: Stream = "stdout", style: str = "") -> None:
  """Prints text on a stream, above any bars."""
  screen = _shown[0].screen if _shown else find([stream]) if style else None
  if screen and stream in _terminals():
    screen.print(Text(text, style), soft_wrap=True)
  else:
    print(text, file=getattr(sys, stream), flush=True)


@contextlib.contextmanager
def bars(screen: Console, *columns: ProgressColumn) -> Iterator[Progress]:
  """Shows bars with these columns; they are gone after the block."""
  terminals = _terminals()
  progress = _Bars(
    *columns,
    console=screen,
    transient=True,
    expand=True,
    refresh_per_second=_REFRESHES,
    # What libraries print comes above the bars, but never into another file.
    redirect_stdout="stdout" in terminals,
    redirect_stderr="stderr" in terminals,
  )
  shown = _Shown(screen, terminals)
  _shown.append(shown)
  try:
    with progress:
      yield progress
  finally:
    _shown.remove(shown)


def _terminals() -> tuple[Stream, ...]:
  """The streams that are terminals.

  While there are bars, `rich` has replaced them; not all versions of it say
  what they were.
  """
  if _shown:
    return _shown[0].terminals
  names: tuple[Stream, ...] = ("stdout", "stderr")
  return tuple(name for name in names if getattr(sys, name).isatty())
