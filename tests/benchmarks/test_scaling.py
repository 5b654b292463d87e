"""The bound on scaling is what a reader computes by hand."""

import pytest

from benchmarks import scaling
from benchmarks.scaling import START, Chip, Traffic

CHIP = Chip(flops=100.0, memory_rate=10.0, memory=1.0, link_rate=8.0)


def test_a_ring_sends_each_share_twice_past_all_other_chips():
  # Four chips: six shares of 2 bytes each, at 8 bytes per second.
  assert scaling.ring(8, 4, 8.0) == pytest.approx(6 * 2 / 8)
  assert scaling.ring(8, 1, 8.0) == 0


def test_gradients_overlap_and_other_collectives_do_not():
  traffic = Traffic(weights=8, others=4, number=3)
  found = scaling.times(100.0, traffic, 2, CHIP)
  # At two chips the ring takes as long as sending the array once.
  assert found.compute == pytest.approx(1.0)
  assert found.reduce == pytest.approx(1.5)
  assert found.apart == pytest.approx(2.5)
  assert found.overlapped == pytest.approx(1.5)
  assert found.started == pytest.approx(1.5 + 3 * START)


def test_one_chip_waits_for_nobody():
  found = scaling.times(100.0, Traffic(0, 0, 0), 1, CHIP)
  assert found.apart == found.overlapped == found.started == 1.0


def test_efficiency_is_one_where_all_chips_are_as_fast_as_one():
  # Batch per chip fixed: as many seconds, four times the images.
  assert scaling.efficiency(2.0, 2.0, (8, 32), 4) == pytest.approx(1.0)
  # Global batch fixed: a quarter of the seconds, the same images.
  assert scaling.efficiency(2.0, 0.5, (8, 8), 4) == pytest.approx(1.0)
  assert scaling.efficiency(2.0, 1.0, (8, 8), 4) == pytest.approx(0.5)
