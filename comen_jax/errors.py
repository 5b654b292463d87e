"""The one exception that means: the user can put this right.

A command prints it as a single line, without a traceback; every other exception
is a fault of ours and keeps its traceback. A leaf: any file may import it.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator


class UserError(ValueError):
  """Bad input. The message names the value and the way out, in one line."""


class BusyError(UserError):
  """Another process has what is asked for; it may be free later."""


class Parser(argparse.ArgumentParser):
  """Of a command's flags: one that is wrong is bad input like any other."""

  def error(self, message: str):
    raise UserError(f"{message} (--help lists the flags)")


@contextlib.contextmanager
def command_line(when_stopped: str) -> Iterator[None]:
  """A command's whole body: bad input ends with one line and exit code 2.

  Args:
    when_stopped: what Ctrl-C says; exit code 130, as shells have it.
  """
  try:
    yield
  except UserError as e:
    print(f"error: {e}", file=sys.stderr)
    sys.exit(2)
  except KeyboardInterrupt:
    print(when_stopped, file=sys.stderr)
    sys.exit(130)
