"""Builds a backbone by its name, and says what its shapes are."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax.core import FrozenDict
from flax.typing import Dtype

from comen_jax.nn.alexnet import MIN_SIZE, AlexNet
from comen_jax.nn.backbone import Backbone, Outputs
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.resnet import ResNet


class Entry(NamedTuple):
  """Describes how a backbone is made.

  Attributes:
    create: constructor that takes the attributes of `Backbone` and `options`.
    norms: normalisations that the backbone can have, the published one first.
    points: names of the points where a loss may reach into it.
    options: names of the attributes that only this kind of backbone has.
    pretrained: whether torchvision publishes weights for it.
    least_size: smallest height and width of an image, in pixels.
  """

  create: Callable[..., Backbone]
  norms: tuple[str, ...]
  points: tuple[str, ...]
  options: tuple[str, ...] = ()
  pretrained: bool = True
  least_size: int = 32


_RESNET = ResNet.norms, ResNet.points, ("style_at", "sdnorm_stem", "remat")
BACKBONES = {
  "digits_cnn": Entry(
    DigitsCNN,
    DigitsCNN.norms,
    DigitsCNN.points,
    pretrained=False,
    least_size=16,
  ),
  "alexnet": Entry(AlexNet, AlexNet.norms, AlexNet.points, least_size=MIN_SIZE),
  "resnet18": Entry(partial(ResNet, depth=18), *_RESNET),
  "resnet34": Entry(partial(ResNet, depth=34), *_RESNET),
  "resnet50": Entry(partial(ResNet, depth=50), *_RESNET),
}


def build(
  name: str,
  num_classes: int,
  norm: str = "batch",
  num_domains: int = 3,
  dtype: Dtype = jnp.float32,
  sdnorm: Mapping[str, bool | float] = FrozenDict(),
  options: Mapping[str, bool | str] = FrozenDict(),
) -> Backbone:
  """Builds the backbone called `name`.

  Args:
    name: a key of `BACKBONES`.
    num_classes: number of classes K.
    norm: one of the entry's `norms`.
    num_domains: number of latent domains M, used by SDNorm.
    dtype: dtype in which the layers compute.
    sdnorm: arguments of `SDNorm`, such as its momentum.
    options: values for the entry's `options`, such as `remat`.
  """
  if name not in BACKBONES:
    raise ValueError(f"unknown backbone {name!r}; known: {sorted(BACKBONES)}")
  return BACKBONES[name].create(
    num_classes=num_classes,
    norm=norm,
    num_domains=num_domains,
    dtype=dtype,
    sdnorm=sdnorm,
    **options,
  )


def shapes(model: Backbone, image_size: int) -> tuple[Outputs, dict[str, Any]]:
  """Shapes of the outputs for one image, and of the variables."""
  return jax.eval_shape(
    lambda image: model.init_with_output(jax.random.key(0), image, train=False),
    jax.ShapeDtypeStruct((1, image_size, image_size, 3), jnp.float32),
  )
