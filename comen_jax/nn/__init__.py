"""Backbones, by name."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from comen_jax.nn.alexnet import AlexNet
from comen_jax.nn.backbone import Backbone
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.resnet import ResNet


class Entry(NamedTuple):
  """How a backbone is made.

  Attributes:
    create: takes the attributes of `Backbone`, and the options.
    norms: the normalisations it has; the first is the published one.
    options: names of what only some backbones take.
    pretrained: torchvision has weights of it.
  """

  create: Callable[..., Backbone]
  norms: tuple[str, ...]
  options: tuple[str, ...] = ()
  pretrained: bool = True


_RESNET = ("style_at", "sdnorm_stem", "remat")
BACKBONES = {
  "digits_cnn": Entry(DigitsCNN, DigitsCNN.norms, pretrained=False),
  "alexnet": Entry(AlexNet, AlexNet.norms),
  "resnet18": Entry(partial(ResNet, depth=18), ResNet.norms, _RESNET),
  "resnet34": Entry(partial(ResNet, depth=34), ResNet.norms, _RESNET),
  "resnet50": Entry(partial(ResNet, depth=50), ResNet.norms, _RESNET),
}


def build(name: str, **kwargs) -> Backbone:
  """The backbone called `name`, built with `kwargs`."""
  if name not in BACKBONES:
    raise ValueError(f"unknown backbone {name!r}; known: {sorted(BACKBONES)}")
  return BACKBONES[name].create(**kwargs)
