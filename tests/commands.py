"""Starts the package's commands many times, and imports its libraries once.

Importing JAX and its companions takes seconds of every start. One server
process imports them, and each command is a fork of it that runs the module as
`python -m` does. Every command has a test with a real start as well.
"""

import atexit
import functools
import json
import os
import pathlib
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]


class Command:
  """A process that runs `python -m module arguments`."""

  def __init__(
    self,
    module: str,
    *arguments: str | os.PathLike,
    environ: dict[str, str] | None = None,
  ):
    """Starts it; `environ` has variables beside those of this process."""
    folder = pathlib.Path(tempfile.mkdtemp())
    os.mkfifo(folder / "out")
    self._err = folder / "err"
    command = [str(folder), environ or {}, module, *map(str, arguments)]
    self._pid = _ask(command)
    self._out = open(folder / "out")  # noqa: SIM115

  def lines(self) -> Iterator[str]:
    """Returns lines of standard output as the process writes them."""
    return iter(self._out.readline, "")

  def kill(self) -> None:
    os.kill(self._pid, signal.SIGKILL)

  def stop(self) -> None:
    os.kill(self._pid, signal.SIGTERM)

  def wait(self, seconds: float = 900) -> tuple[int, str, str]:
    """Returns the exit code, the rest of the output, and standard error.

    A process that hangs for so many seconds is killed.
    """
    timer = threading.Timer(seconds, self.kill)
    timer.start()
    with self._out:
      out = self._out.read()
    code = _ask(self._pid)
    timer.cancel()
    return code, out, self._err.read_text()


def together(
  module: str, *arguments: str | os.PathLike, count: int = 2, devices: int = 1
) -> list[Command]:
  """Starts processes of one run, each with its own devices."""
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
  return [
    Command(
      module,
      *arguments,
      environ={
        **with_devices(devices),
        "COMEN_COORDINATOR": f"127.0.0.1:{port}",
        "COMEN_NUM_PROCESSES": str(count),
        "COMEN_PROCESS_ID": str(number),
      },
    )
    for number in range(count)
  ]


def with_devices(count: int) -> dict[str, str]:
  """Returns variables that give a process so many CPU devices."""
  flag = f"--xla_force_host_platform_device_count={count}"
  return {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flag}"}


def run(module: str, *arguments: str | os.PathLike) -> tuple[int, str, str]:
  """Returns the exit code, standard output and standard error."""
  return Command(module, *arguments).wait()


@functools.cache
def _server() -> subprocess.Popen:
  server = subprocess.Popen(
    [sys.executable, __file__],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
  )  # fmt: skip
  atexit.register(server.communicate)
  return server


def _ask(request: list | int) -> int:
  """Sends a command, returns its pid; sends a pid, returns its exit code."""
  server = _server()
  print(json.dumps(request), file=server.stdin, flush=True)
  return int(server.stdout.readline())


def _serve() -> None:
  """Answers requests until standard input is closed."""
  import comen_jax.train  # noqa: F401

  for line in sys.stdin:
    request = json.loads(line)
    if isinstance(request, int):
      status = os.waitpid(request, 0)[1]
      print(os.waitstatus_to_exitcode(status), flush=True)
    elif pid := os.fork():
      print(pid, flush=True)
    else:
      os._exit(_become(*request))


def _become(
  folder: str, environ: dict[str, str], module: str, *arguments: str
) -> int:
  """Runs a module in a forked process, returns its exit code."""
  os.environ.update(environ)
  for name, number in (("out", 1), ("err", 2)):
    file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, number)
    os.close(file)
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  sys.stdout.reconfigure(line_buffering=True)
  sys.path[0] = os.getcwd()
  sys.argv = [module, *arguments]
  try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0
  except SystemExit as e:
    if e.code is None or isinstance(e.code, int):
      return e.code or 0
    print(e.code, file=sys.stderr)
    return 1
  except BaseException:
    traceback.print_exc()
    return 1
  finally:
    sys.stdout.flush()


if __name__ == "__main__":
  _serve()
