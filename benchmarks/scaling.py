"""The bound that published rates of a chip put on scaling.

docs/scale.md, "Pods", explains the reckoning.
"""

from typing import NamedTuple


class Chip(NamedTuple):
  """Published rates of a chip.

  Attributes:
    flops: operations per second, bfloat16 products.
    memory_rate: bytes per second between the chip and its memory.
    memory: bytes of its memory.
    link_rate: bytes per second that it sends to other chips, over all links.
  """

  flops: float
  memory_rate: float
  memory: float
  link_rate: float


# Google Cloud documentation, page "TPU v5e", "System architecture": 197 TFLOPs
# (bf16), 819 GBps, 16 GB, interchip interconnect 1600 Gbps.
V5E = Chip(197e12, 819e9, 16e9, 1600e9 / 8)
# An assumption: the time that a collective takes whatever its size. Google
# publishes none.
START = 10e-6


class Traffic(NamedTuple):
  """What the chips exchange in a step.

  Attributes:
    weights: bytes of the gradients of weights. They are reduced while the
      backward pass goes on.
    others: bytes of all other collectives. The step waits for them.
    number: number of collectives.
  """

  weights: int
  others: int
  number: int


class Times(NamedTuple):
  """Seconds of a step at the published rates.

  Attributes:
    compute: time of the operations.
    reduce: time of the collectives.
    apart: time of the step if nothing overlaps.
    overlapped: time of the step if the reduction of gradients overlaps.
    started: the same, and each collective takes `START` more.
  """

  compute: float
  reduce: float
  apart: float
  overlapped: float
  started: float


def ring(nbytes: float, chips: int, rate: float) -> float:
  """Seconds of an all-reduce on a ring.

  Each chip sends a share of 1/n, n - 1 times to add it up and n - 1 times to
  hand the sums around.

  Args:
    nbytes: bytes of the array.
    chips: number of chips n.
    rate: bytes per second that a chip sends.
  """
  return 2 * (chips - 1) / chips * nbytes / rate


def times(flops: float, traffic: Traffic, chips: int, chip: Chip) -> Times:
  """Seconds of a step.

  Args:
    flops: operations of one chip.
    traffic: what the chips exchange.
    chips: number of chips.
    chip: rates of the chip.
  """
  compute = flops / chip.flops
  weights = ring(traffic.weights, chips, chip.link_rate)
  others = ring(traffic.others, chips, chip.link_rate)
  overlapped = max(compute, weights) + others
  start = START * traffic.number if chips > 1 else 0.0
  return Times(
    compute=compute,
    reduce=weights + others,
    apart=compute + weights + others,
    overlapped=overlapped,
    started=overlapped + start,
  )


def efficiency(
  alone: float, together: float, images: tuple[int, int], chips: int
) -> float:
  """Images per second and chip, as a share of those of one chip.

  Args:
    alone: seconds of a step on one chip.
    together: seconds of a step on all chips.
    images: images per step on one chip, and on all chips.
    chips: number of chips.
  """
  return (images[1] / together / chips) / (images[0] / alone)
