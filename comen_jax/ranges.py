"""What each key of a config may be: one table, and the check that uses it.

This file imports no jax, so a wrong value is answered at once. Names that a
registry knows, such as those of methods, are checked by `config.check`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from comen_jax.errors import UserError
from comen_jax.methods import options
from comen_jax.rules import (
  DECAY,
  FLAG,
  NAME,
  NOT_NEGATIVE,
  PATH,
  POSITIVE,
  SHARE,
  Rule,
  is_number,
  name,
  number,
  one_of,
  whole,
)


def _are_fractions(value: Any) -> bool:
  """Whether it is a rising sequence of numbers between 0 and 1."""
  if not isinstance(value, tuple | list) or not all(map(is_number, value)):
    return False
  return all(a < b for a, b in zip((0, *value), (*value, 1)))


def _are_shares(value: Any) -> bool:
  if not isinstance(value, tuple | list) or not all(map(is_number, value)):
    return False
  return all(0 <= v <= 1 for v in value) and abs(sum(value) - 1) <= 1e-6


def _is_recipe(value: Any) -> bool:
  return isinstance(value, str) or hasattr(value, "items")


_OF_METHODS = dict(options.rules())
_METHOD = NAME._replace(allowed="a name of docs/methods.md")
_DATA = ("digits_dg", "pacs", "vlcs", "office_home", "folder", "mini_digits")
_LAYER = NAME._replace(allowed="stem; for ResNets also layer1 to layer4")
_DOMAIN = NAME._replace(allowed="a domain of the data; empty: its default")
RULES = {
  # Method
  "method": _METHOD,
  "norm": name("none", "batch", "sdnorm", other="empty: the method's own"),
  # Network
  "backbone": name("digits_cnn", "alexnet", "resnet18", "resnet34", "resnet50"),
  "pretrained": PATH,
  "style_at": _LAYER,
  "sdnorm_stem": FLAG,
  "remat": FLAG,
  "dtype": one_of("float32", "bfloat16"),
  # Data
  "dataset": name(*_DATA),
  "data_dir": PATH,
  "target": _DOMAIN,
  "store_size": whole(1, 4096),
  "image_size": whole(1, 4096),
  "normalise": name("half", "imagenet"),
  "augment": Rule(
    _is_recipe,
    "one of none, digits, amplitude, randconv, jigen, mmld; or a mapping",
  ),
  # Training
  "seed": whole(0, 2**32 - 1),  # jax keeps no more bits of a seed.
  "num_domains": whole(1, 1000),
  "batch_size": whole(1),
  "eval_batch_size": whole(1),
  "epochs": whole(1, 100_000),
  "stage_shares": Rule(
    _are_shares, "shares of the epochs that sum to 1, such as (0.1, 0.2, 0.7)"
  ),
  "oracle": FLAG,
  # Optimiser
  "learning_rate": POSITIVE,
  "lr_drops": Rule(
    _are_fractions, "rising fractions between 0 and 1, such as (0.4, 0.8)"
  ),
  "lr_factor": SHARE,
  "momentum": DECAY,
  "weight_decay": NOT_NEGATIVE,
  # SDNorm
  "sdnorm.momentum": DECAY,
  "sdnorm.epsilon": POSITIVE,
  "sdnorm.per_domain_affine": FLAG,
  "sdnorm.min_mass": NOT_NEGATIVE,
  "sdnorm.prior_mass": NOT_NEGATIVE,
  # COMEN
  "comen.protogr": FLAG,
  "comen.protoccl": FLAG,
  "comen.protogr_weight": NOT_NEGATIVE,
  "comen.protoccl_weight": NOT_NEGATIVE,
  "comen.prototype_decay": number(0, 1),
  "comen.affinity_threshold": number(-1, 1),  # A cosine.
  "comen.temperature": POSITIVE,
  "comen.prototype_form": name("raw", "unit", "centred"),
  "comen.straight_through": FLAG,
  "comen.shared_attention": FLAG,
  "comen.entropy_weight": NOT_NEGATIVE,
  "comen.balance_weight": NOT_NEGATIVE,
  "comen.anchor_weight": NOT_NEGATIVE,
  "comen.clustering": name("kmeans", "gmm"),
  "comen.portion": SHARE,
  "comen.pretrain_steps": whole(1, 10_000_000),
  "comen.pretrain_views": whole(1, 1000),
  "comen.pretrain_noise": NOT_NEGATIVE,
  "comen.style_from": name("copy", "start", "pixels", "live"),
  "comen.style_view": name("picture", "training"),
  "comen.test_temperature": POSITIVE,
  "comen.style_gradient": FLAG,
  "comen.freeze_style_layer": FLAG,
  "comen.true_domains": FLAG,
  # Other methods
  **_OF_METHODS,
  # Logging
  "logging.tensorboard": FLAG,
  "logging.every": whole(1),
}
_BLOCKS = {key.partition(".")[0] for key in RULES if "." in key}


def check(config: Mapping[str, Any]) -> None:
  """Raises UserError at the first key or value that cannot be right.

  Blocks that the table does not have belong to methods, which check them. An
  option of a method other than COMEN may be absent: it has a default.
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
  needed = (key for key in RULES if key not in _OF_METHODS)
  if missing := [key for key in needed if key not in values]:
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
