"""Rules for the values of config keys: what holds, and how to say it.

This file imports no jax, so a wrong value is answered at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

# Limits of float32, in which training computes. What is nearer to 0 becomes 0.
_LARGEST, _SMALLEST = 3.4e38, 1.2e-38


class Rule(NamedTuple):
  """What a key may be.

  Attributes:
    holds: whether a value is allowed.
    allowed: the allowed values, in words that follow "give".
  """

  holds: Callable[[Any], bool]
  allowed: str


def whole(low: int, high: int | None = None) -> Rule:
  """A whole number from `low` to `high`."""
  most = float("inf") if high is None else high
  limit = "or more" if high is None else f"to {high}"
  words = f"a whole number, {low} {limit}"
  return Rule(lambda v: is_whole(v) and low <= v <= most, words)


def number(low: float, high: float | None = None) -> Rule:
  """A finite number from `low` to `high`."""
  most = _LARGEST if high is None else high
  limit = "or more" if high is None else f"to {high}"
  words = f"a finite number, {low} {limit}"
  return Rule(lambda v: is_number(v) and low <= v <= most, words)


def one_of(*names: str) -> Rule:
  """One of some names."""
  return Rule(lambda v: v in names, f"one of {', '.join(names)}")


def name(*known: str, other: str = "") -> Rule:
  """A name that its registry checks; the known ones are listed here.

  Args:
    *known: names that --help lists.
    other: words for what else is allowed.
  """
  words = f"one of {', '.join(known)}{'; ' * bool(other)}{other}"
  return Rule(lambda v: isinstance(v, str), words)


def is_whole(value: Any) -> bool:
  """Whether it is a whole number; True and False are none."""
  return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
  """Whether it is a number, which may be NaN."""
  return is_whole(value) or isinstance(value, float)


def _are_names(value: Any) -> bool:
  if not isinstance(value, tuple | list):
    return False
  return all(isinstance(v, str) for v in value) and len({*value}) == len(value)


FLAG = Rule(lambda v: type(v) is bool, "True or False")
NAME = Rule(lambda v: isinstance(v, str), "a name")
NAMES = Rule(_are_names, "different names, such as ('layer1', 'layer2')")
PATH = Rule(lambda v: isinstance(v, str), "a path")
NOT_NEGATIVE = number(0)
PROBABILITY = number(0, 1)
POSITIVE = Rule(
  lambda v: is_number(v) and _SMALLEST <= v <= _LARGEST,
  "a finite number above 0",
)
SHARE = Rule(
  lambda v: is_number(v) and _SMALLEST <= v <= 1,
  "a number above 0, at most 1",
)
DECAY = Rule(
  lambda v: is_number(v) and 0 <= v < 1, "a number from 0 to below 1"
)
