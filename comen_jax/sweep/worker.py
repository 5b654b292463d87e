"""A process that trains runs for `jobs`, one after the other.

  python -m comen_jax.sweep.worker <flags of the sweep, for the records>

Requests come in on standard input and events go out on standard output, one
JSON object per line. What a run prints goes to `log.txt` in its folder. If the
sweep ends, however it ends, this process ends at once: a run may be killed at
any moment. SIGTERM saves the run first.
"""

import json
import os
import pathlib
import queue
import sys
import threading
from typing import Any, TextIO

from comen_jax import stopping
from comen_jax.errors import command_line


def main() -> None:
  stopping.listen()
  # Kept apart from 0 and 1, which libraries and child processes use.
  requests = os.fdopen(os.dup(0), "r")
  events = os.fdopen(os.dup(1), "w")
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  line = requests.readline()
  if not line:
    return
  first = json.loads(line)
  _log_to(pathlib.Path(first["folder"]))
  if first["cores"]:
    # Before jax starts: its threads are as many as the cores it finds.
    os.sched_setaffinity(0, first["cores"])
  _serve(first, requests, events)


def _serve(request: dict[str, Any], requests: TextIO, events: TextIO) -> None:
  """Trains the run of `request`, then those that come in."""
  # Imported here: only now the cores are set.
  from absl import logging

  from comen_jax import process
  from comen_jax.process import nans
  from comen_jax.run import console
  from comen_jax.sweep import config_json, one_by_one

  def send(**event: Any) -> None:
    print(json.dumps(event), file=events, flush=True)

  logging.set_verbosity(request["verbosity"])
  process.start()  # Before the first thread: allocator.py says why.
  waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
  threading.Thread(
    target=_receive, args=(requests, waiting), daemon=True
  ).start()
  console.listen(lambda *news: send(news=news))
  while True:
    config = config_json.decode(request["config"])
    with nans.debugged(request["debug_nans"]):
      outcome = one_by_one.train_one(config, pathlib.Path(request["folder"]))
    send(outcome=outcome)
    request = waiting.get()
    _log_to(pathlib.Path(request["folder"]))


def _receive(requests: TextIO, waiting: queue.SimpleQueue) -> None:
  for line in requests:
    waiting.put(json.loads(line))
  os._exit(0)  # The sweep has ended, or was killed.


def _log_to(folder: pathlib.Path) -> None:
  """Sends standard output and error to the log of a run."""
  folder.mkdir(parents=True, exist_ok=True)
  sys.stdout.flush()
  sys.stderr.flush()
  file = os.open(
    folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666
  )
  for number in (1, 2):
    os.dup2(file, number)
  os.close(file)


if __name__ == "__main__":
  with command_line("stopped; the same command resumes the sweep"):
    main()
