"""The time that is left, and how it is written."""

import pytest

from comen_jax.terminal import pace


@pytest.fixture
def clock(monkeypatch):
  now = [100.0]
  monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
  return now


def test_the_time_left_follows_from_the_time_so_far(clock):
  work = pace.Pace(10)
  assert work.seconds_left() is None
  for _ in range(4):
    clock[0] += 2.5
    work.advance(0.5)
  assert work.seconds_left() == pytest.approx(8 * 5)
  clock[0] += 10  # Nothing more was done: it is slower than it was.
  assert work.seconds_left() == pytest.approx(8 * 10)


def test_what_is_skipped_does_not_count_as_pace(clock):
  work = pace.Pace(3)
  clock[0] += 1000  # A compilation.
  work.skip(1)
  assert work.seconds_left() is None
  clock[0] += 7
  work.advance(1)
  assert work.seconds_left() == pytest.approx(7)


@pytest.mark.parametrize(
  ("seconds", "text"),
  [(0, "0 s"), (23.6, "24 s"), (59.6, "1 min"), (719, "12 min"),
   (3590, "1 h 0 min"), (3900, "1 h 5 min"), (86390, "1 d 0 h"),
   (183600, "2 d 3 h")],
)  # fmt: skip
def test_a_duration_has_one_or_two_units(seconds, text):
  assert pace.duration(seconds) == text
