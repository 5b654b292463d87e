"""TensorBoard events of a run.

tensorboardX's own SummaryWriter writes from a thread. On a full disk that
thread dies, and the run then waits for it forever. Here a write that fails
raises OSError at once.
"""

import contextlib
import pathlib
import time
import weakref

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog


class Events:
  """Writes scalars to a new event file in a run's folder."""

  def __init__(self, folder: pathlib.Path, first_step: int):
    """Opens the file; older events from `first_step` on are hidden."""
    self._writer = EventsWriter(str(folder / "events"))
    # Closed at the latest when the object of a failed run is freed.
    self.close = weakref.finalize(self, _close, self._writer)
    self._add(first_step, session_log=SessionLog(status=SessionLog.START))
    self._writer.flush()

  def add(self, scalars: dict[str, float], step: int) -> None:
    """Adds scalars by name; the system has them when this returns."""
    for name, value in scalars.items():
      self._add(step, summary=summary.scalar(name, value))
    self._writer.flush()

  def _add(self, step: int, **content: object) -> None:
    self._writer.write_event(Event(wall_time=time.time(), step=step, **content))


def _close(writer: EventsWriter) -> None:
  # All events are flushed, unless a flush has failed: it would fail again.
  with contextlib.suppress(OSError):
    writer.close()
