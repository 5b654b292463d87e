"""A process that holds contestants, and runs one when it is told to.

  python -m benchmarks.worker benchmarks.jax_steps

The module has a function `prepare(name) -> Contestant`. Requests and answers
are lines of JSON. Between requests the process waits on a pipe, so that it
takes no time from the contestants of other processes.
"""

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO


class Contestant(NamedTuple):
  """Something whose steps are timed.

  Attributes:
    run: runs that many steps, and returns when the last one has finished.
    facts: what the record says about it.
  """

  run: Callable[[int], None]
  facts: dict[str, Any]


class _Server:
  """Answers requests, and measures how much CPU time idling takes."""

  def __init__(self, prepare: Callable[[str], Contestant]):
    self._prepare = prepare
    self._contestants: dict[str, Contestant] = {}
    self._idle_cpu = self._idle = 0.0
    self._stopped = time.process_time(), time.perf_counter()

  def answer(self, request: dict[str, Any]) -> dict[str, Any]:
    cpu, now = time.process_time(), time.perf_counter()
    self._idle_cpu += cpu - self._stopped[0]
    self._idle += now - self._stopped[1]
    answer = self._do(request)
    self._stopped = time.process_time(), time.perf_counter()
    return answer

  def _do(self, request: dict[str, Any]) -> dict[str, Any]:
    name = request["name"]
    if request["do"] == "prepare":
      contestant = self._contestants[name] = self._prepare(name)
      contestant.run(1)  # Compiles.
      return {"facts": contestant.facts}
    if request["do"] == "run":
      start = time.perf_counter()
      self._contestants[name].run(request["steps"])
      return {"seconds": (time.perf_counter() - start) / request["steps"]}
    return {"idle_cpu_share": self._idle_cpu / max(self._idle, 1e-9)}


def serve(module: str, requests: TextIO, answers: TextIO) -> None:
  """Answers each line of `requests` with a line of `answers`."""

  def answer(values: dict[str, Any]) -> None:
    answers.write(json.dumps(values) + "\n")
    answers.flush()

  try:
    server = _Server(importlib.import_module(module).prepare)
    for line in requests:
      answer(server.answer(json.loads(line)))
  except Exception as e:
    traceback.print_exc()
    answer({"error": f"{type(e).__name__}: {e}"})


def main() -> None:
  # Libraries print to stdout. Only answers may go there.
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)
  serve(sys.argv[1], sys.stdin, answers)


if __name__ == "__main__":
  main()
