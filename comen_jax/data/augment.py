"""Changes a batch of images at random, on the device, inside the jitted step.

Images are float32 [B, S, S, 3] in [0, 1]. The random numbers of an image depend
only on the key and on its position in the batch, so neither the batch size nor
the number of devices changes them. (A mixture of two images also depends on the
batch that the second one is drawn from.)
"""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data.recipes import Recipe
from comen_jax.data.spectrum import random_amplitude_mix

_TRIES = 10  # Boxes drawn before the central one is used, as in torchvision.


def augment_images(
  key: jax.Array, images: jax.Array, size: int, recipe: Recipe
) -> jax.Array:
  """Changes images [B, S, S, 3] at random, to [B, size, size, 3].

  Args:
    key: random key, fresh in each step.
    images: images [B, S, S, 3].
    size: side of the result, in pixels.
    recipe: which changes are made, and how strongly.
  """
  crop_key, flip_key, colour_key, gray_key, mix_key = jax.random.split(key, 5)
  if recipe.crop_scale is None:
    images = resize(images, size)
  else:
    images = random_resized_crop(crop_key, images, size, recipe.crop_scale)
  if recipe.flip:
    images = random_flip(flip_key, images, recipe.flip)
  if recipe.jitter or recipe.hue:
    reach = recipe.jitter
    images = colour_jitter(colour_key, images, reach, reach, reach, recipe.hue)
  if recipe.grayscale:
    images = random_grayscale(gray_key, images, recipe.grayscale)
  if recipe.amplitude:
    images = random_amplitude_mix(mix_key, images, 1.0, recipe.amplitude)
  return images


def resize(images: jax.Array, size: int) -> jax.Array:
  """Resizes whole images to [B, size, size, 3], as Pillow's bilinear does."""
  # Not len(): an exported network has a symbolic batch size.
  shape = (images.shape[0], size, size, 3)
  if images.shape == shape:
    return images
  return jax.image.resize(images, shape, "bilinear", antialias=True)


def random_resized_crop(
  key: jax.Array,
  images: jax.Array,
  size: int,
  scale: tuple[float, float] = (0.8, 1.0),
  ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> jax.Array:
  """Crops a random box, as torchvision does, to [B, size, size, 3]."""
  _check(images)
  boxes = random_boxes(key, len(images), images.shape[1], scale, ratio)
  return crop_and_resize(images, boxes, size)


def random_boxes(
  key: jax.Array,
  count: int,
  side: int,
  scale: tuple[float, float],
  ratio: tuple[float, float],
) -> jax.Array:
  """Draws boxes (top, left, height, width) in a square, int32 [count, 4].

  Uses the first of ten drawn boxes that fits, else the largest central one.

  Args:
    key: random key.
    count: number of boxes.
    side: side of the square, in pixels.
    scale: range of the box's share of the area, drawn uniformly.
    ratio: range of width / height, drawn log-uniformly.
  """
  draws = _draw(key, count, 2 * _TRIES + 2)
  area = _between(*scale, draws[:, :_TRIES])
  log_ratio = _between(*map(math.log, ratio), draws[:, _TRIES : 2 * _TRIES])
  length, root = side * jnp.sqrt(area), jnp.exp(log_ratio / 2)
  # [count, tries, 2]: heights, widths.
  sides = jnp.round(jnp.stack([length / root, length * root], axis=-1))
  fits = ((sides > 0) & (sides <= side)).all(axis=-1)
  first = jnp.argmax(fits, axis=1)[:, None, None]
  drawn = jnp.take_along_axis(sides, first, axis=1)[:, 0]
  central = np.array([[side / ratio[0], side * ratio[1]]]).round().clip(1, side)
  some_fit = fits.any(axis=1, keepdims=True)
  sides = jnp.where(some_fit, drawn, central.astype(np.float32))
  space = side - sides
  place = jnp.floor(draws[:, 2 * _TRIES :] * (space + 1))
  place = jnp.where(some_fit, jnp.minimum(place, space), space // 2)
  return jnp.concatenate([place, sides], axis=1).astype(jnp.int32)


def crop_and_resize(
  images: jax.Array, boxes: jax.Array, size: int
) -> jax.Array:
  """Crops boxes [B, 4] of `random_boxes`, resized as Pillow's bilinear does.

  The filter reads no pixel outside a box, not even at its edges.
  """
  _check(images)
  top, left, height, width = boxes.T
  rows = _filters(top, height, images.shape[1], size)
  columns = _filters(left, width, images.shape[2], size)
  # Centred at 0, the error of one bfloat16 pass on TPU is below 1 / 255.
  centred = images - 0.5
  centred = jnp.einsum("byh,bhwc->bywc", rows, centred)
  return jnp.einsum("bxw,bywc->byxc", columns, centred) + 0.5


def random_flip(
  key: jax.Array, images: jax.Array, probability: float = 0.5
) -> jax.Array:
  """Flips each image horizontally with `probability`."""
  _check(images)
  chosen = _draw(key, len(images), 1)[:, :, None, None] < probability
  return jnp.where(chosen, images[:, :, ::-1], images)


def random_grayscale(
  key: jax.Array, images: jax.Array, probability: float
) -> jax.Array:
  """Replaces the channels of each image by its luma with `probability`."""
  _check(images)
  chosen = _draw(key, len(images), 1)[:, :, None, None] < probability
  return jnp.where(chosen, _luma(_planes(images))[..., None], images)


def colour_jitter(
  key: jax.Array,
  images: jax.Array,
  brightness: float,
  contrast: float,
  saturation: float,
  hue: float,
) -> jax.Array:
  """Changes colours as torchvision's ColorJitter, in a random order per image.

  Factors are uniform in [max(0, 1 - reach), 1 + reach], hue shifts in
  [-hue, hue].

  Args:
    key: random key.
    images: images [B, S, S, 3].
    brightness: reach of the brightness factor.
    contrast: reach of the contrast factor.
    saturation: reach of the saturation factor.
    hue: largest shift of the hue, in turns, at most 0.5.
  """
  _check(images)
  draws = _draw(key, len(images), 8)
  reach = np.array([[brightness, contrast, saturation]], np.float32)
  factors = _between(np.maximum(0, 1 - reach), 1 + reach, draws[:, :3])
  turns = _between(-hue, hue, draws[:, 3])
  order = jnp.argsort(draws[:, 4:7], axis=1)
  hue_after = jnp.floor(4 * draws[:, 7]).astype(jnp.int32)
  return change_colours(images, factors, turns, order, hue_after)


def change_colours(
  images: jax.Array,
  factors: jax.Array,
  turns: jax.Array,
  order: jax.Array,
  hue_after: jax.Array,
) -> jax.Array:
  """Changes brightness, contrast and saturation (0, 1, 2), and the hue.

  The first three are blends of an image with black, its mean luma or its luma:
  factor * x + (1 - factor) * target, clipped. One formula therefore serves a
  batch whose images are at different changes. The hue shift costs more, so it
  is computed once; blends with factor 1 take the places after (before) it.

  Args:
    images: images [B, S, S, 3].
    factors: factors [B, 3] of brightness, contrast and saturation.
    turns: hue shifts [B], in turns.
    order: int [B, 3], order of the three blends of each image.
    hue_after: int [B], number of blends before the hue shift, 0 to 3.
  """
  _check(images)

  def blend(planes: list[jax.Array], nth: int, chosen: jax.Array):
    which = order[:, nth : nth + 1]
    factor = jnp.take_along_axis(factors, which, axis=1)
    factor = jnp.where(chosen[:, None], factor, 1.0)[:, :, None]
    luma, which = _luma(planes), which[:, :, None]
    target = jnp.where(which == 2, luma, 0.0)
    mean = luma.mean(axis=(1, 2), keepdims=True)
    target = (1 - factor) * jnp.where(which == 1, mean, target)
    return [(factor * plane + target).clip(0, 1) for plane in planes]

  planes = _planes(images)
  for nth in range(3):
    planes = blend(planes, nth, nth < hue_after)
  planes = _turn_hue(planes, turns[:, None, None])
  for nth in range(3):
    planes = blend(planes, nth, nth >= hue_after)
  # Without a barrier, XLA recomputes the blends in every consumer: on CPU,
  # `random_grayscale` after this function made both together 4 times slower.
  return jax.lax.optimization_barrier(jnp.stack(planes, axis=-1))


def _check(images: jax.Array) -> None:
  chex.assert_shape(images, (None, None, None, 3))
  chex.assert_type(images, jnp.float32)
  chex.assert_equal(images.shape[1], images.shape[2])


def _draw(key: jax.Array, count: int, numbers: int) -> jax.Array:
  """Draws uniform numbers in [0, 1), [count, numbers], one key per position."""
  keys = jax.random.split(key, count)
  return jax.vmap(lambda key: jax.random.uniform(key, (numbers,)))(keys)


def _between(low: float, high: float, share: jax.Array) -> jax.Array:
  return low + (high - low) * share


def _filters(
  start: jax.Array, length: jax.Array, side: int, size: int
) -> jax.Array:
  """Computes the weights of `side` old pixels in `size` new ones.

  The filter is a triangle, as wide as two pixels of the coarser grid.

  Returns:
    Weights [B, size, side]; each row sums to 1.
  """
  start = start.astype(jnp.float32)[:, None, None]
  length = length.astype(jnp.float32)[:, None, None]
  pixels = jnp.arange(side, dtype=jnp.float32)[None, None, :]
  new_pixels = jnp.arange(size, dtype=jnp.float32)[None, :, None]
  step = length / size
  centre = start + (new_pixels + 0.5) * step
  distance = jnp.abs(pixels + 0.5 - centre) / jnp.maximum(step, 1.0)
  inside = (pixels >= start) & (pixels < start + length)
  weights = jnp.where(inside, jnp.maximum(1 - distance, 0.0), 0.0)
  return weights / weights.sum(axis=-1, keepdims=True)


def _planes(images: jax.Array) -> list[jax.Array]:
  """Splits off the channels, [B, S, S] each: long last axes vectorise well."""
  return [images[..., channel] for channel in range(3)]


def _luma(planes: list[jax.Array]) -> jax.Array:
  """Returns ITU-R 601 luma. Not a dot product: a TPU would use bfloat16."""
  red, green, blue = planes
  return 0.299 * red + 0.587 * green + 0.114 * blue


def _turn_hue(planes: list[jax.Array], turns: jax.Array) -> list[jax.Array]:
  """Adds `turns` [B, 1, 1] to the hue in HSV; keeps saturation and value."""
  red, green, blue = planes
  value = jnp.maximum(jnp.maximum(red, green), blue)
  chroma = value - jnp.minimum(jnp.minimum(red, green), blue)
  slope = 1 / jnp.where(chroma == 0, 1.0, chroma)
  sixths = jnp.where(
    value == red,
    (green - blue) * slope,
    jnp.where(
      value == green, 2 + (blue - red) * slope, 4 + (red - green) * slope
    ),
  )
  hue = sixths / 6 + turns

  def channel(offset: int) -> jax.Array:
    angle = hue + offset / 6
    angle = 6 * (angle - jnp.floor(angle))  # `%` is several times slower.
    return value - chroma * jnp.minimum(angle, 4 - angle).clip(0, 1)

  return [channel(5), channel(3), channel(1)]
