"""Stored uint8 squares to what the network sees, on the device."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.errors import UserError

# Per channel mean and std of pixels in [0, 1].
NORMALISATIONS = {
  "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
  "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


class Views(NamedTuple):
  """Both map uint8 [B, S, S, 3] to float32 [B, H, W, 3], H = image_size."""

  train: Callable[[jax.Array, jax.Array], jax.Array]  # (key, images)
  evaluate: Callable[[jax.Array], jax.Array]  # (images)


def make_views(normalise: str, augment: str, image_size: int) -> Views:
  """Views as the config names them.

  Args:
    normalise: a key of `NORMALISATIONS`.
    augment: "none".
    image_size: H; the whole stored square is resized to it.
  """
  if normalise not in NORMALISATIONS:
    raise UserError(
      f"normalise={normalise!r}: choose one of {', '.join(NORMALISATIONS)}"
    )
  if augment != "none":
    raise UserError(f"augment={augment!r}: choose none")
  mean, std = (
    np.asarray(v, np.float32).reshape(1, 1, 1, 3)
    for v in NORMALISATIONS[normalise]
  )

  def evaluate(images: jax.Array) -> jax.Array:
    pixels = images.astype(jnp.float32) / 255.0
    shape = (len(images), image_size, image_size, 3)
    if pixels.shape != shape:
      pixels = jax.image.resize(pixels, shape, "bilinear", antialias=True)
    return (pixels - mean) / std

  return Views(train=lambda key, images: evaluate(images), evaluate=evaluate)
