"""How the tests start a script."""

import pathlib
import subprocess
import sys

# A shell cannot trap a signal that was ignored when it started, and what is
# started in the background of a script has Ctrl-C ignored.
_WITH_CTRL_C = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def start_script(
  script: pathlib.Path, *words: str, folder: pathlib.Path | None = None
) -> subprocess.Popen:
  """Starts a script, to which Ctrl-C can be sent, with pipes for its output."""
  return subprocess.Popen(
    [sys.executable, "-c", _WITH_CTRL_C, script, *words], cwd=folder,
    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
  )  # fmt: skip
