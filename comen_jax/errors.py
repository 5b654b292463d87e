"""Errors that a user can correct, and how commands show them.

A command prints a `UserError` as one line, without a traceback. Any other
exception is a bug of ours and keeps its traceback. This file imports nothing
from comen_jax, so any file may import it.
"""

import argparse
import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import NoReturn

_PIPE_CLOSED = 141  # As a shell reports SIGPIPE.
STOPPED = 75  # Exit code EX_TEMPFAIL: saved; start the same command again.
# Control characters, line separators, and marks that turn the writing around:
# in a file's name, they would break the line or the terminal.
_CONTROLS = (
  *range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F),
  *range(0x2066, 0x206A),
)  # fmt: skip
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in _CONTROLS}


class UserError(ValueError):
  """Reports bad input; its message is one line with the value and a remedy."""


class BusyError(UserError):
  """Reports that another process uses a resource, which may be free later."""


class Stopped(SystemExit):
  """Ends a process that SIGTERM has stopped; see `stopping`.

  A SystemExit, because libraries pass it on wherever they catch exceptions.
  """

  def __init__(self, after: str = ""):
    """Takes where the work was stopped, such as "step 12"."""
    super().__init__(STOPPED)
    self.after = f" after {after}" if after else ""


class Parser(argparse.ArgumentParser):
  """Parses the flags of a command; a wrong flag raises `UserError`."""

  def error(self, message: str) -> NoReturn:
    raise UserError(f"{message} (--help lists the flags)")


def printable(text: str) -> str:
  """Writes control characters as Python does, such as \\n and \\x1b."""
  return text.translate(_ESCAPES)


@contextlib.contextmanager
def command_line(when_stopped: str) -> Iterator[None]:
  """Wraps the body of a command: a `UserError` ends it with exit code 2.

  Args:
    when_stopped: message that begins with "stopped", after Ctrl-C, which ends
      it with exit code 130, or SIGTERM, if the command listens to it.
  """
  try:
    yield
    sys.stdout.flush()
  except BrokenPipeError:
    if not _nobody_reads():
      raise
    sys.exit(_PIPE_CLOSED)
  except UserError as e:
    # `data.prepare` lists problems in lines of their own.
    lines = map(printable, str(e).split("\n"))
    print("error:", "\n".join(lines), file=sys.stderr)
    sys.exit(2)
  except Stopped as e:
    said = when_stopped.replace("stopped", f"stopped by SIGTERM{e.after}", 1)
    print(said, file=sys.stderr)
    raise
  except KeyboardInterrupt:
    print(when_stopped, file=sys.stderr)
    sys.exit(130)


def _nobody_reads() -> bool:
  """Whether stdout is a pipe whose reader, such as `head`, has gone.

  Then stdout becomes the null device: at its end, Python writes what is left.
  """
  poll = select.poll()
  poll.register(sys.stdout, select.POLLOUT)
  events = sum(event for _, event in poll.poll(0))
  if not events & (select.POLLERR | select.POLLHUP):
    return False
  os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
  return True
