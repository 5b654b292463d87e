"""Random changes of a batch of images, on the device, inside the jitted step.

Images are float32 [B, S, S, 3] in [0, 1]. What is drawn for an image follows
from the key and from its position in the batch alone, so that neither the size
of the batch nor the number of devices changes it.
"""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np

RECIPES = {
  "none": {},
  # Digits-DG in KaiyangZhou/Dassl.pytorch, as in the paper: none.
  "digits": {},
  # PACS and VLCS in fmcarlucci/JigenDG, data/data_helper.py. It greys each of
  # nine tiles by itself; without its puzzle a tile is the image.
  "jigen": {
    "crop_scale": (0.8, 1.0),
    "flip": 0.5,
    "jitter": 0.4,
    "hue": 0.4,
    "grayscale": 0.1,
  },
  # PACS, VLCS and Office-Home in mil-tokyo/dg_mmld, dataloader/Dataset.py.
  "mmld": {"crop_scale": (0.8, 1.0), "flip": 0.5, "jitter": 0.4, "hue": 0.4},
}

_TRIES = 10  # Boxes drawn before the central one is taken, as in torchvision.


def augment_images(
  key: jax.Array,
  images: jax.Array,
  size: int,
  *,
  crop_scale: tuple[float, float] | None = None,
  flip: float = 0.0,
  jitter: float = 0.0,
  hue: float = 0.0,
  grayscale: float = 0.0,
) -> jax.Array:
  """Images to [B, size, size, 3], augmented by the values of a recipe.

  Args:
    key: fresh in each step.
    images: [B, S, S, 3].
    size: of the result, in pixels.
    crop_scale: least and greatest share of an image's area in a crop; None
      takes the whole image.
    flip: probability.
    jitter: reach of brightness, contrast and saturation around 1.
    hue: reach of the turn of hue, in turns, at most 0.5.
    grayscale: probability.
  """
  crop_key, flip_key, colour_key, gray_key = jax.random.split(key, 4)
  if crop_scale is None:
    images = resize(images, size)
  else:
    images = random_resized_crop(crop_key, images, size, crop_scale)
  if flip:
    images = random_flip(flip_key, images, flip)
  if jitter or hue:
    images = colour_jitter(colour_key, images, jitter, jitter, jitter, hue)
  if grayscale:
    images = random_grayscale(gray_key, images, grayscale)
  return images


def resize(images: jax.Array, size: int) -> jax.Array:
  """Whole images [B, S, S, 3] to [B, size, size, 3], as Pillow's bilinear."""
  # Not len(): in an exported network the batch has no number.
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
  """A box of each image, drawn as by torchvision, to [B, size, size, 3]."""
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
  """Boxes (top, left, height, width) in squares of `side`, int32 [count, 4].

  The area is uniform in `scale` (of the square's), width / height log-uniform
  in `ratio`; the first of ten that fits is taken, else the largest central one.
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
  """Boxes [B, 4] as by `random_boxes`, resized as by Pillow's bilinear.

  Nothing outside of a box is seen, not even by the filter at its edges.
  """
  _check(images)
  top, left, height, width = boxes.T
  rows = _filters(top, height, images.shape[1], size)
  columns = _filters(left, width, images.shape[2], size)
  # Around 0, one bfloat16 pass of a TPU errs by less than 1 / 255.
  centred = images - 0.5
  centred = jnp.einsum("byh,bhwc->bywc", rows, centred)
  return jnp.einsum("bxw,bywc->byxc", columns, centred) + 0.5


def random_flip(
  key: jax.Array, images: jax.Array, probability: float = 0.5
) -> jax.Array:
  """Left and right exchanged, in each image with `probability`."""
  _check(images)
  chosen = _draw(key, len(images), 1)[:, :, None, None] < probability
  return jnp.where(chosen, images[:, :, ::-1], images)


def random_grayscale(
  key: jax.Array, images: jax.Array, probability: float
) -> jax.Array:
  """Three equal channels of luma, in each image with `probability`."""
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
  """torchvision's ColorJitter: four changes, in an order drawn for each image.

  Args:
    key: draws factors, uniform in [max(0, 1 - reach), 1 + reach], turns of hue,
      uniform in [-hue, hue], and orders.
    images: [B, S, S, 3].
    brightness: reach of the factor.
    contrast: reach of the factor.
    saturation: reach of the factor.
    hue: reach, in turns, at most 0.5.
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
  """Brightness, contrast, saturation (0, 1, 2) by factors, hue by turns.

  The first three are blends of an image with its target (black, its mean luma,
  its luma): factor * x + (1 - factor) * target, clipped. So one blend serves a
  batch in which each image is at another of them. The turn of hue costs more,
  and is done once: blends of factor 1 stand in for those on its other side.

  Args:
    images: [B, S, S, 3].
    factors: [B, 3].
    turns: [B].
    order: int [B, 3], the blends of each image, first to last.
    hue_after: int [B], the number of blends before the turn of hue, 0 to 3.
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
  # Without a barrier XLA repeats the blends in whatever reads the result: on a
  # CPU `random_grayscale` after this made both together four times slower.
  return jax.lax.optimization_barrier(jnp.stack(planes, axis=-1))


def _check(images: jax.Array) -> None:
  chex.assert_shape(images, (None, None, None, 3))
  chex.assert_type(images, jnp.float32)
  chex.assert_equal(images.shape[1], images.shape[2])


def _draw(key: jax.Array, count: int, numbers: int) -> jax.Array:
  """Uniform in [0, 1), [count, numbers], from a key for each position."""
  keys = jax.random.split(key, count)
  return jax.vmap(lambda key: jax.random.uniform(key, (numbers,)))(keys)


def _between(low: float, high: float, share: jax.Array) -> jax.Array:
  return low + (high - low) * share


def _filters(
  start: jax.Array, length: jax.Array, side: int, size: int
) -> jax.Array:
  """Weights of `side` pixels in each of `size` new ones, [B, size, side].

  A triangle, as wide as two pixels of the coarser of both grids.
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
  """Red, green and blue, [B, S, S] each: vector units want long last axes."""
  return [images[..., channel] for channel in range(3)]


def _luma(planes: list[jax.Array]) -> jax.Array:
  """ITU-R 601; no dot, which a TPU would do in bfloat16."""
  red, green, blue = planes
  return 0.299 * red + 0.587 * green + 0.114 * blue


def _turn_hue(planes: list[jax.Array], turns: jax.Array) -> list[jax.Array]:
  """Hue in HSV plus `turns` [B, 1, 1]; saturation and value stay."""
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
