"""Commands that work on a finished run as they are printed."""

import os
import pathlib
import shlex
import sys


def of(run: pathlib.Path) -> dict[str, str]:
  """Returns what to do with a finished run: the page, and a prediction."""
  page = run / "report" / "index.html"
  made = _short(str(page)) if page.exists() else report(run)
  commands = {"page": made}
  if (examples := run / "examples").is_dir():
    commands["predict"] = _python("predict", "--run", run, examples)
  return commands


def lines(run: pathlib.Path) -> str:
  """Writes them line by line; none is wrapped, so that a copy works."""
  return "\n".join(f"{what:8} {how}" for what, how in of(run).items())


def report(folder: str | pathlib.Path) -> str:
  """Returns the command that makes the page of a run or a sweep."""
  return _python("report", folder)


def _python(command: str, *arguments: str | pathlib.Path) -> str:
  """Returns a command line for this Python, and this folder if it can."""
  words = [_short(sys.executable), "-m", f"comen_jax.{command}"]
  return shlex.join([*words, *(_short(str(word)) for word in arguments)])


def _short(path: str) -> str:
  """Writes a path inside the current folder without that folder."""
  here = os.getcwd() + os.sep
  return path.removeprefix(here)
