"""Trains several runs at a time, each in a worker process with its share.

A thread per job hands its worker the next run when the last one has ended, so
long and short runs balance. The threads only pass messages on: the main thread
counts, prints and writes. SIGTERM goes on to the workers: they save their runs.
"""

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
from absl import logging

from comen_jax.errors import STOPPED, Stopped
from comen_jax.run import console
from comen_jax.sweep import config_json
from comen_jax.sweep.board import Board
from comen_jax.sweep.grid import Run
from comen_jax.sweep.shares import Share
from comen_jax.sweep.tally import Outcome, Tally, place


class _Event(NamedTuple):
  """What happened to a job: its run began (no news), goes on, or ended."""

  job: int
  run: Run
  news: tuple = ()
  outcome: Outcome | None = None


def train(tally: Tally, shares: list[Share]) -> None:
  """Trains the runs that are left, one at a time per share."""
  waiting: queue.SimpleQueue[Run] = queue.SimpleQueue()
  for run in tally.left:
    waiting.put(run)
  events: queue.SimpleQueue[_Event | BaseException] = queue.SimpleQueue()
  # Shares stay as they are if fewer runs are left: a resumed run then has as
  # many cores as before, and computes the same to the last bit.
  jobs = [
    _Job(number, share, tally, waiting, events)
    for number, share in enumerate(shares[: len(tally.left)])
  ]
  ended = 0
  with _stopping(jobs, events), Board(len(jobs), len(tally.left)) as board:
    while ended < len(tally.left):
      event = _next(events)
      if isinstance(event, BaseException):
        raise event
      name = event.run.name
      if event.outcome:
        ended += 1
        board.end(event.job)
        tally.end(event.run, event.outcome, f"{name}: ")
      elif event.news:
        board.news(event.job, name, *event.news)
      else:
        console.say(tally.begin(event.run))
        board.begin(event.job, name)


def _next(events: queue.SimpleQueue) -> "_Event | BaseException":
  """Waits for an event.

  It wakes up every second: a signal that comes just before the wait begins does
  not interrupt it, and its handler would run only at the next event.
  """
  while True:
    with contextlib.suppress(queue.Empty):
      return events.get(timeout=1.0)


@contextlib.contextmanager
def _stopping(jobs: list["_Job"], events: queue.SimpleQueue) -> Iterator[None]:
  """Starts the jobs and stops them however the body ends, also by a signal.

  A signal is one more event. Raised by its handler, Ctrl-C would be lost
  wherever Python can only print an exception, such as in a finaliser.
  """
  errors = {signal.SIGINT: KeyboardInterrupt(), signal.SIGTERM: Stopped()}
  before = {
    number: signal.signal(number, lambda *_, error=error: events.put(error))
    for number, error in errors.items()
  }
  how = signal.SIGKILL
  try:
    for job in jobs:
      job.start()
    yield
  except Stopped:
    how = signal.SIGTERM
    raise
  finally:
    for job in jobs:
      job.stop(how)
    for job in jobs:
      job.join()
    for number, handler in before.items():
      signal.signal(number, handler)


class _Job(threading.Thread):
  """Trains runs in a worker process; starts a new one if it has died."""

  def __init__(
    self,
    number: int,
    share: Share,
    tally: Tally,
    waiting: queue.SimpleQueue,
    events: queue.SimpleQueue,
  ):
    super().__init__(daemon=True)
    self._number, self._share = number, share
    self._folder, self._waiting, self._events = tally.folder, waiting, events
    self._worker: subprocess.Popen | None = None
    self._stopped = threading.Event()
    self._starting = threading.Lock()

  def stop(self, how: signal.Signals) -> None:
    """Signals the worker and gives it no more runs."""
    with self._starting:
      self._stopped.set()
      if self._worker:
        self._worker.send_signal(how)

  def run(self) -> None:
    try:
      while not self._stopped.is_set():
        run = self._waiting.get_nowait()
        self._events.put(_Event(self._number, run))
        outcome = self._train(run)
        self._events.put(_Event(self._number, run, outcome=outcome))
    except queue.Empty:
      pass
    except Exception as e:
      self._events.put(e)
    finally:
      if self._worker:
        _end(self._worker)

  def _train(self, run: Run) -> Outcome:
    """Hands the run to the worker and passes its news on."""
    with self._starting:
      if self._stopped.is_set():
        return Outcome("failed", "the sweep was stopped")
      if not self._worker:
        self._worker = _start(self._share)
    worker = self._worker
    request = {
      "config": config_json.encode(run.config),
      "folder": str(place(self._folder, run)),
      "cores": self._share.cores,
      "verbosity": logging.get_verbosity(),
      "debug_nans": jax.config.jax_debug_nans,
    }
    with contextlib.suppress(BrokenPipeError):  # It has died: see below.
      print(json.dumps(request), file=worker.stdin, flush=True)
    for line in worker.stdout:
      event: dict[str, Any] = json.loads(line)
      if "outcome" in event:
        return Outcome(*event["outcome"])
      self._events.put(_Event(self._number, run, tuple(event["news"])))
    self._worker = None
    if (code := _end(worker)) == STOPPED:
      self._events.put(Stopped())  # SIGTERM came to the worker itself.
    return Outcome("failed", _how_it_died(code, request["folder"]))


def _start(share: Share) -> subprocess.Popen:
  # The flags are those of the sweep: a result records its command.
  command = [sys.executable, "-m", "comen_jax.sweep.worker", *sys.argv[1:]]
  return subprocess.Popen(
    command,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    env=share.environ(),
    start_new_session=True,  # Ctrl-C is for the sweep, which stops the workers.
  )


def _end(worker: subprocess.Popen) -> int:
  """Closes the pipes of a worker, at which it ends -> its exit code."""
  with contextlib.suppress(BrokenPipeError), worker:
    pass
  return worker.returncode


def _how_it_died(code: int, folder: str) -> str:
  how = f"exit code {code}"
  if code < 0:
    with contextlib.suppress(ValueError):
      how = signal.Signals(-code).name
  return f"its process died ({how}; see {folder}/log.txt)"
