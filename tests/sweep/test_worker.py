"""The process that trains the runs of a job."""

import json
import subprocess
import sys

from conftest import ROOT

# Says how many threads there are when memory begins to be kept, and ends.
_CODE = """
import os, sys, threading
from comen_jax import process
from comen_jax.sweep import worker

def start():
  open(sys.argv[1], "w").write(str(threading.active_count()))
  os._exit(0)

process.start = start
worker.main()
"""


def test_memory_is_kept_before_the_first_thread_starts(tmp_path):
  """A thread that starts earlier has an arena of its own.

  glibc gives this arena to later threads, too. A third of the time of a step
  was then spent on page faults.
  """
  place = tmp_path / "threads"
  request = {"folder": str(tmp_path / "run"), "cores": [], "verbosity": 0}
  process = subprocess.Popen(
    [sys.executable, "-c", _CODE, place],
    cwd=ROOT, stdin=subprocess.PIPE, text=True,
  )  # fmt: skip
  process.stdin.write(json.dumps(request) + "\n")
  process.stdin.flush()  # It stays open: its end would end the worker.
  assert process.wait(120) == 0
  process.stdin.close()
  assert place.read_text() == "1"
