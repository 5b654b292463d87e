"""What each key of a config may be: one table, and the check that uses it.

This file imports no jax, so a wrong value is answered at once. Names that a
registry knows, such as those of methods, are checked by `config.check`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from comen_jax.errors import UserError

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


def _whole(low: int, high: int | None = None) -> Rule:
  """A whole number from `low` to `high`."""
  most = float("inf") if high is None else high
  limit = "or more" if high is None else f"to {high}"
  words = f"a whole number, {low} {limit}"
  return Rule(lambda v: _is_whole(v) and low <= v <= most, words)


def _number(low: float, high: float | None = None) -> Rule:
  """A finite number from `low` to `high`."""
  most = _LARGEST if high is None else high
  limit = "or more" if high is None else f"to {high}"
  words = f"a finite number, {low} {limit}"
  return Rule(lambda v: _is_number(v) and low <= v <= most, words)


def _one_of(*names: str) -> Rule:
  return Rule(lambda v: v in names, f"one of {', '.join(names)}")


def _is_whole(value: Any) -> bool:
  return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
  return _is_whole(value) or isinstance(value, float)


def _are_fractions(value: Any) -> bool:
  """Whether it is a rising sequence of numbers between 0 and 1."""
  if not isinstance(value, tuple | list) or not all(map(_is_number, value)):
    return False
  return all(a < b for a, b in zip((0, *value), (*value, 1)))


def _are_shares(value: Any) -> bool:
  if not isinstance(value, tuple | list) or not all(map(_is_number, value)):
    return False
  return all(0 <= v <= 1 for v in value) and abs(sum(value) - 1) <= 1e-6


def _is_recipe(value: Any) -> bool:
  return isinstance(value, str) or hasattr(value, "items")


_FLAG = Rule(lambda v: type(v) is bool, "True or False")
_NAME = Rule(lambda v: isinstance(v, str), "a name")
_PATH = Rule(lambda v: isinstance(v, str), "a path")
_POSITIVE = Rule(
  lambda v: _is_number(v) and _SMALLEST <= v <= _LARGEST,
  "a finite number above 0",
)
_SHARE = Rule(
  lambda v: _is_number(v) and _SMALLEST <= v <= 1,
  "a number above 0, at most 1",
)
_DECAY = Rule(
  lambda v: _is_number(v) and 0 <= v < 1, "a number from 0 to below 1"
)

RULES = {
  # Method
  "method": _NAME,
  "norm": _NAME,
  # Network
  "backbone": _NAME,
  "pretrained": _PATH,
  "style_at": _NAME,
  "sdnorm_stem": _FLAG,
  "remat": _FLAG,
  "dtype": _one_of("float32", "bfloat16"),
  # Data
  "dataset": _NAME,
  "data_dir": _PATH,
  "target": _NAME,
  "store_size": _whole(1, 4096),
  "image_size": _whole(1, 4096),
  "normalise": _NAME,
  "augment": Rule(_is_recipe, "the name of a recipe, or a mapping"),
  # Training
  "seed": _whole(0, 2**32 - 1),  # jax keeps no more bits of a seed.
  "num_domains": _whole(1, 1000),
  "batch_size": _whole(1),
  "eval_batch_size": _whole(1),
  "epochs": _whole(1, 100_000),
  "stage_shares": Rule(
    _are_shares, "shares of the epochs that sum to 1, such as (0.1, 0.3, 0.6)"
  ),
  "oracle": _FLAG,
  # Optimiser
  "learning_rate": _POSITIVE,
  "lr_drops": Rule(
    _are_fractions, "rising fractions between 0 and 1, such as (0.4, 0.8)"
  ),
  "lr_factor": _SHARE,
  "momentum": _DECAY,
  "weight_decay": _number(0),
  # SDNorm
  "sdnorm.momentum": _DECAY,
  "sdnorm.epsilon": _POSITIVE,
  "sdnorm.per_domain_affine": _FLAG,
  "sdnorm.min_mass": _number(0),
  "sdnorm.prior_mass": _number(0),
  # COMEN
  "comen.protogr": _FLAG,
  "comen.protoccl": _FLAG,
  "comen.protogr_weight": _number(0),
  "comen.protoccl_weight": _number(0),
  "comen.prototype_decay": _number(0, 1),
  "comen.affinity_threshold": _number(-1, 1),  # A cosine.
  "comen.temperature": _POSITIVE,
  "comen.prototype_form": _NAME,
  "comen.straight_through": _FLAG,
  "comen.shared_attention": _FLAG,
  "comen.entropy_weight": _number(0),
  "comen.balance_weight": _number(0),
  "comen.anchor_weight": _number(0),
  "comen.clustering": _NAME,
  "comen.portion": _SHARE,
  "comen.pretrain_steps": _whole(1, 10_000_000),
  "comen.pretrain_views": _whole(1, 1000),
  "comen.pretrain_noise": _number(0),
  "comen.style_from": _NAME,
  "comen.test_temperature": _POSITIVE,
  "comen.style_gradient": _FLAG,
  "comen.freeze_style_layer": _FLAG,
  "comen.true_domains": _FLAG,
  # Logging
  "logging.tensorboard": _FLAG,
  "logging.every": _whole(1),
}
_BLOCKS = {key.partition(".")[0] for key in RULES if "." in key}


def check(config: Mapping[str, Any]) -> None:
  """Raises UserError at the first key or value that cannot be right.

  Blocks that the table does not have belong to methods, which check them.
  """
  values = dict(flat(config))
  for key, value in values.items():
    if key in RULES:
      check_value(key, value)
    elif "." not in key or key.partition(".")[0] in _BLOCKS:
      raise UserError(
        f"{key}={value!r}: there is no such key; give --config FILE --help to"
        " list the keys"
      )
  if missing := [key for key in RULES if key not in values]:
    raise UserError(
      f"the config has no {missing[0]}: add it, it is"
      f" {RULES[missing[0]].allowed}; configs/digits.py has all keys"
    )


def check_value(key: str, value: Any) -> None:
  """Raises UserError if the table does not allow `value` for `key`."""
  if not RULES[key].holds(value):
    raise UserError(f"{key}={value!r}: give {RULES[key].allowed}")


def flat(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
  """Yields dotted keys and values; an augmentation is one value."""
  for key, value in config.items():
    if hasattr(value, "items") and key != "augment":
      yield from ((f"{key}.{inner}", v) for inner, v in flat(value))
    else:
      yield key, value
