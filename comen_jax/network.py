"""The network of a config: the same in training, prediction and export."""

from typing import Any

import jax
import jax.numpy as jnp

from comen_jax import settings
from comen_jax.data.views import Views, make_views
from comen_jax.nn.backbone import Backbone, Outputs
from comen_jax.nn.registry import build


def build_network(config, num_classes: int) -> tuple[Backbone, Views]:
  """The backbone, and what it sees of a stored picture."""
  model = build(
    config.backbone,
    num_classes=num_classes,
    norm=settings.norm(config),
    num_domains=config.num_domains,
    dtype=jnp.dtype(config.dtype),
    sdnorm=config.sdnorm.to_dict(),
    options=settings.options(config),
  )
  return model, make_views(config.normalise, config.augment, config.image_size)


def shapes(model: Backbone, image_size: int) -> tuple[Outputs, dict[str, Any]]:
  """Of the outputs for one picture, and of the variables; nothing is made."""
  return jax.eval_shape(
    lambda image: model.init_with_output(jax.random.key(0), image, train=False),
    jax.ShapeDtypeStruct((1, image_size, image_size, 3), jnp.float32),
  )
