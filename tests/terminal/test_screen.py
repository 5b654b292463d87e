"""Lines and bars share a screen; without a terminal there are only lines."""

import sys

import pytest
import terminals
from rich.progress import BarColumn, TextColumn

from comen_jax.terminal import screen

ERASE = "\x1b[2K"


def show(found):
  return screen.bars(found, TextColumn("{task.description}"), BarColumn(None))


def test_without_a_terminal_there_is_no_screen(capsys):
  assert screen.find() is None and screen.width() is None
  screen.write("[red]a very long line[/red] " + "x" * 200, style="bold")
  out = capsys.readouterr().out
  assert out == "[red]a very long line[/red] " + "x" * 200 + "\n"


def test_a_terminal_that_cannot_move_its_cursor_is_none(monkeypatch):
  terminals.use(monkeypatch, 80)
  monkeypatch.setenv("TERM", "dumb")
  assert screen.find() is None and screen.width() is None


def test_standard_error_is_the_screen_if_output_goes_to_a_file(
  monkeypatch, capsys
):
  error = terminals.use(monkeypatch, 80, ["stderr"])
  with show(screen.find()) as bars:
    bars.add_task("counting", total=2)
    screen.write("a result")
    screen.write("a notice", "stderr")
  # The file gets the result and nothing else; its lines have no limit.
  assert capsys.readouterr().out == "a result\n"
  assert "a notice" in error.lines() and "a result" not in error.getvalue()
  assert screen.width() is None


@pytest.mark.parametrize("width", [30, 80, 160])
def test_lines_come_above_the_bars(monkeypatch, width):
  terminal = terminals.use(monkeypatch, width)
  assert screen.width() == width
  with show(screen.find()) as bars:
    assert screen.has_bars()
    bars.add_task("work", total=2)
    screen.write("[first] line")
    print("a library's line")
    screen.write("y" * 200)
  lines = terminal.lines()
  assert "[first] line" in lines and "a library's line" in lines
  assert "y" * 200 in lines  # The terminal folds it; a copy of it is whole.
  drawn = [line for line in lines if line.startswith("work ")]
  assert drawn and {len(line) for line in drawn} == {width - 3}


def test_bars_are_gone_after_an_error(monkeypatch):
  terminal = terminals.use(monkeypatch, 80)
  before = sys.stdout
  with pytest.raises(KeyboardInterrupt), show(screen.find()) as bars:
    bars.add_task("work", total=2)
    bars.refresh()
    raise KeyboardInterrupt
  assert terminal.getvalue().endswith(ERASE) and not screen.has_bars()
  assert sys.stdout is before


def test_the_cursor_stays_visible(monkeypatch):
  """A process that is killed could not show it again."""
  terminal = terminals.use(monkeypatch, 80)
  with show(screen.find()) as bars:
    bars.add_task("work", total=2)
  assert "\x1b[?25l" not in terminal.getvalue()
