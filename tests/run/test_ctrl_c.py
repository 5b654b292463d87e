"""Ctrl-C in a real terminal: the bar goes first, then one line."""

import os
import pty
import re
import subprocess
import sys
import termios

from conftest import ROOT

WIDTH = 60
# Takes steps until Ctrl-C, as a run does, but trains nothing. It ends by itself
# after a minute. A shell that starts tests in the background has them ignore
# Ctrl-C, and their processes would, too.
CODE = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
os.open(os.ttyname(0), os.O_RDWR)  # It now gets the signals of this terminal.
from comen_jax.errors import command_line
from comen_jax.methods.base import Stage
from comen_jax.run import plan, progress
units = plan.units((Stage("encode", 1, None),))
with command_line("stopped; the same command resumes the run"):
  with progress.Progress(units, steps_per_epoch=1000, every=1) as shown:
    shown.begin(units[0])
    history = []
    for _ in range(6000):
      history.append({"loss": 1.0})
      shown.step(units[0], history)
      time.sleep(0.01)
"""


def screen(text):
  """The lines of a terminal after `text`; bars move the cursor up and left."""
  lines, row, column = [""], 0, 0
  for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\s\S]", text):
    if part == "\r":
      column = 0
    elif part == "\n":
      row += 1
    elif part.endswith("A") and len(part) > 1:
      row -= int(part[2:-1] or 1)
    elif part == "\x1b[2K":
      lines[row] = ""
    elif len(part) == 1:
      if column == WIDTH:  # What comes after the last column is below it.
        row, column = row + 1, 0
      lines += [""] * (row + 1 - len(lines))
      line = lines[row].ljust(column)
      lines[row] = line[:column] + part + line[column + 1 :]
      column += 1
    lines += [""] * (row + 1 - len(lines))
  return [line.rstrip() for line in lines]


def test_ctrl_c_takes_the_bar_away_and_leaves_one_line():
  ours, theirs = pty.openpty()
  termios.tcsetwinsize(theirs, (24, WIDTH))
  process = subprocess.Popen(
    [sys.executable, "-c", CODE],
    stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    cwd=ROOT, env={**os.environ, "TERM": "xterm", "COLUMNS": str(WIDTH)},
  )  # fmt: skip
  os.close(theirs)
  text, sent = "", False
  while True:
    try:
      text += os.read(ours, 4096).decode(errors="replace")
    except OSError:  # The process has closed the terminal.
      break
    if not sent and " left" in text:
      os.write(ours, b"\x03")
      sent = True
  os.close(ours)
  assert process.wait() == 130, text
  assert "encode 1/1 " in text and "^C" in text
  shown = [line for line in screen(text) if line]
  assert shown == ["stopped; the same command resumes the run"]
