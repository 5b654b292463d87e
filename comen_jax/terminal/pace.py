"""How long work takes, and how long it will still take."""

import time


class Pace:
  """Estimates the seconds left from the time that the work so far took."""

  def __init__(self, left: float):
    """Takes how much there is to do, in any unit, and starts the clock."""
    self._left = left
    self._done, self._start = 0.0, time.monotonic()

  def skip(self, amount: float) -> None:
    """Counts what was done at another pace: the clock starts again with 0."""
    self._left -= amount
    self._done, self._start = 0.0, time.monotonic()

  def advance(self, amount: float = 1.0) -> None:
    """Counts what was done."""
    self._done += amount
    self._left -= amount

  def seconds_left(self) -> float | None:
    """Seconds until all is done; None as long as nothing was."""
    if not self._done:
      return None
    each = (time.monotonic() - self._start) / self._done
    return max(0.0, each * self._left)


def duration(seconds: float) -> str:
  """Writes a time with one or two units: 24 s, 12 min, 1 h 5 min, 2 d 3 h."""
  seconds = round(seconds)
  if seconds < 60:
    return f"{seconds} s"
  minutes = round(seconds / 60)
  if minutes < 60:
    return f"{minutes} min"
  hours, minutes = divmod(minutes, 60)
  if hours < 24:
    return f"{hours} h {minutes} min"
  days, hours = divmod(hours, 24)
  return f"{days} d {hours} h"
