"""Errors that a user can correct, and how commands show them.

A command prints a `UserError` as one line, without a traceback. Any other
exception is a bug of ours and keeps its traceback. This file imports nothing
from comen_jax, so any file may import it.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn


class UserError(ValueError):
  """Reports bad input; its message is one line with the value and a remedy."""


class BusyError(UserError):
  """Reports that another process uses a resource, which may be free later."""


class Parser(argparse.ArgumentParser):
  """Parses the flags of a command; a wrong flag raises `UserError`."""

  def error(self, message: str) -> NoReturn:
    raise UserError(f"{message} (--help lists the flags)")


@contextlib.contextmanager
def command_line(when_stopped: str) -> Iterator[None]:
  """Wraps the body of a command: a `UserError` ends it with exit code 2.

  Args:
    when_stopped: message after Ctrl-C, which ends it with exit code 130.
  """
  try:
    yield
  except UserError as e:
    print(f"error: {e}", file=sys.stderr)
    sys.exit(2)
  except KeyboardInterrupt:
    print(when_stopped, file=sys.stderr)
    sys.exit(130)
