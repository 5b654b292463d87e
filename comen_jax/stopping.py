"""SIGTERM: a command saves what is done and ends with exit code 75.

A scheduler sends it before it takes the machine away. While nothing is
unsaved, the process ends at once. Otherwise the stop waits for the next
`check`. There is one between any two batches, where all processes of a run are
in step. This file does not import jax, so that a command can listen early.
"""

import contextlib
import dataclasses
import signal
from collections.abc import Callable, Iterator

from comen_jax.errors import Stopped


@dataclasses.dataclass
class _Notice:
  """What this process knows of a stop.

  Attributes:
    came: whether SIGTERM has come to this process, if it is alone.
    held: whether something is unsaved.
    service: says whether all processes stop at the n-th question.
    questions: number of questions that the service was asked.
  """

  came: bool = False
  held: bool = False
  service: Callable[[int], bool] | None = None
  questions: int = 0


_notice = _Notice()


def listen() -> None:
  """Has SIGTERM stop this process."""
  signal.signal(signal.SIGTERM, _handle)


def listen_together(service: Callable[[int], bool]) -> None:
  """Has SIGTERM to any process of a run stop all of them at one `check`.

  Args:
    service: is asked with 1, 2, 3, ... by all processes alike. It listens to
      SIGTERM itself.
  """
  _notice.service = service


def check() -> None:
  """Raises Stopped if the process is to stop here."""
  if _notice.service:
    # The service waits for exactly one number, so none may be left out.
    _notice.questions += 1
    if _notice.service(_notice.questions):
      raise Stopped
  elif _notice.came:
    raise Stopped


@contextlib.contextmanager
def held() -> Iterator[None]:
  """Lets a stop wait for `check` in this block, whose work is unsaved.

  The block itself saves when `check` raises Stopped in it.
  """
  _notice.held = True
  try:
    yield
  finally:
    _notice.held = False
  check()


def _handle(*_: object) -> None:
  first, _notice.came = not _notice.came, True
  if first and not _notice.held:
    raise Stopped
