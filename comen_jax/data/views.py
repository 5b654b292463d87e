"""Turns stored uint8 squares into the network's input, on the device."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data.augment import augment_images, resize
from comen_jax.data.random_conv import random_convolution
from comen_jax.data.recipes import Recipe, get_recipe
from comen_jax.errors import UserError

# Mean and standard deviation of each channel, for pixels in [0, 1].
NORMALISATIONS = {
  "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
  "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


class Views(NamedTuple):
  """Functions that give the network's input, float32 [B, H, W, 3].

  Attributes:
    train: (key, images uint8 [B, S, S, 3]) -> augmented, normalised images.
    evaluate: (images uint8 [B, S, S, 3]) -> normalised images.
    pixels: normalised images -> pixels in [0, 1]; undoes `normalise`.
    normalise: pixels in [0, 1] -> normalised images.
    same: whether `train` does the same as `evaluate`.
  """

  train: Callable[[jax.Array, jax.Array], jax.Array]
  evaluate: Callable[[jax.Array], jax.Array]
  pixels: Callable[[jax.Array], jax.Array]
  normalise: Callable[[jax.Array], jax.Array]
  same: bool


def make_views(
  normalise: str, augment: str | Mapping[str, Any], image_size: int
) -> Views:
  """Makes the views that the config asks for.

  Args:
    normalise: a key of `NORMALISATIONS`.
    augment: augmentation of the training view, as `get_recipe` takes it.
    image_size: height and width of the network's input. The evaluation view is
      the whole stored square, resized to it.
  """
  if normalise not in NORMALISATIONS:
    raise UserError(
      f"normalise={normalise!r}: choose one of {', '.join(NORMALISATIONS)}"
    )
  recipe = get_recipe(augment)
  mean, std = (
    np.asarray(v, np.float32).reshape(1, 1, 1, 3)
    for v in NORMALISATIONS[normalise]
  )

  def train(key: jax.Array, images: jax.Array) -> jax.Array:
    stored = images.astype(jnp.float32) / 255.0
    if not recipe.convolution:
      return to_input(augment_images(key, stored, image_size, recipe))
    # Last: its kernels are made for normalised images, whose mean is near 0.
    key, kernel_key = jax.random.split(key)
    images = to_input(augment_images(key, stored, image_size, recipe))
    return random_convolution(kernel_key, images, keep=1.0 - recipe.convolution)

  def evaluate(images: jax.Array) -> jax.Array:
    stored = images.astype(jnp.float32) / 255.0
    return to_input(resize(stored, image_size))

  def to_input(pixels: jax.Array) -> jax.Array:
    return (pixels - mean) / std

  def to_pixels(images: jax.Array) -> jax.Array:
    return jnp.clip(images * std + mean, 0.0, 1.0)

  same = recipe == Recipe()
  return Views(train, evaluate, to_pixels, to_input, same)
