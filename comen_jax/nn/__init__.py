"""Backbones, by name."""

from typing import NamedTuple

import flax.linen as nn

from comen_jax.nn.digits_cnn import DigitsCNN


class Backbone(NamedTuple):
  """A backbone and the normalisation it was published with."""

  module: type[nn.Module]
  own_norm: str


BACKBONES = {"digits_cnn": Backbone(DigitsCNN, "none")}


def build(name: str, **kwargs) -> nn.Module:
  """The backbone called `name`, built with `kwargs`."""
  if name not in BACKBONES:
    raise ValueError(f"unknown backbone {name!r}; known: {sorted(BACKBONES)}")
  return BACKBONES[name].module(**kwargs)
