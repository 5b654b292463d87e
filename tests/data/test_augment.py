"""Augmentation against slow references: Pillow, colorsys, plain loops."""

import colorsys
import itertools
import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from comen_jax import sharding
from comen_jax.data import augment
from comen_jax.data.recipes import RECIPES, Recipe

# Compilation takes most of the time here, so tests share functions and shapes.
KEY = jax.random.key(0)
random_boxes = jax.jit(augment.random_boxes, static_argnums=(1, 2, 4))
crop_and_resize = jax.jit(augment.crop_and_resize, static_argnums=2)
resize = jax.jit(augment.resize, static_argnums=1)
random_flip = jax.jit(augment.random_flip)
random_grayscale = jax.jit(augment.random_grayscale)
change_colours = jax.jit(augment.change_colours)
SIDE = 64
RATIO = (3 / 4, 4 / 3)  # The default.


def _photo(side):
  return load_sample_image("china.jpg")[100 : 100 + side, 200 : 200 + side]


def _noise(side, count=None):
  shape = (side, side, 3) if count is None else (count, side, side, 3)
  return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def _images(count, side):
  return np.float32(_noise(side, count) / 255)


def _pillow(picture, size):
  picture = Image.fromarray(picture)
  resized = picture.resize((size, size), Image.Resampling.BILINEAR)
  return np.asarray(resized) / 255


@pytest.mark.parametrize("picture", [_photo, _noise])
@pytest.mark.parametrize("size", [224, 288])
def test_resizing_is_close_to_pillows_bilinear(picture, size):
  picture = picture(256)
  got = resize(np.float32(picture / 255)[None], size)
  error = np.abs(got[0] - _pillow(picture, size))
  assert error.mean() < 0.5 / 255  # Rounding to whole levels.
  assert error.max() < 2 / 255


BOXES = np.array(  # Top, left, height, width.
  [
    (0, 0, 64, 64),
    (5, 9, 50, 40),
    (33, 2, 31, 62),
    (40, 50, 11, 13),
    (63, 0, 1, 64),
    (7, 8, 28, 28),
  ],
  np.int32,
)


@pytest.mark.parametrize("picture", [_photo, _noise])
def test_boxes_are_cropped_and_resized_as_by_pillow(picture):
  picture = picture(SIDE)
  images = np.float32(np.tile(picture[None], (len(BOXES), 1, 1, 1)) / 255)
  crops = crop_and_resize(images, BOXES, 28)
  for (top, left, height, width), crop in zip(BOXES, crops):
    box = picture[top : top + height, left : left + width]
    error = np.abs(crop - _pillow(box, 28))
    assert error.mean() < 0.5 / 255
    assert error.max() < 2 / 255


def test_a_tpus_bfloat16_passes_err_by_less_than_one_level(monkeypatch):
  images = _images(len(BOXES), SIDE)
  images[1], images[2] = 0, 1
  exact = crop_and_resize(images, BOXES, 28)
  einsum = jnp.einsum

  def rough_einsum(spec, *arrays):
    rounded = [jax.lax.reduce_precision(a, 8, 7) for a in arrays]
    return einsum(spec, *rounded)

  monkeypatch.setattr(jnp, "einsum", rough_einsum)
  rough = jax.jit(lambda x: augment.crop_and_resize(x, BOXES, 28))(images)
  assert 0.1 / 255 < np.abs(rough - exact).max() < 1 / 255


def _torchvision_box(rng, side, scale, ratio):
  for _ in range(10):
    area = side * side * rng.uniform(*scale)
    aspect = math.exp(rng.uniform(*map(math.log, ratio)))
    width = round(math.sqrt(area * aspect))
    height = round(math.sqrt(area / aspect))
    if 0 < width <= side and 0 < height <= side:
      top = rng.randint(0, side - height)
      return top, rng.randint(0, side - width), height, width
  return 0, 0, side, side


@pytest.mark.parametrize("scale", [(0.8, 1.0), (0.08, 0.5)])
def test_boxes_are_spread_as_torchvisions(scale):
  got = np.asarray(random_boxes(KEY, 4000, SIDE, scale, RATIO))
  rng = random.Random(0)
  want = [_torchvision_box(rng, SIDE, scale, RATIO) for _ in range(4000)]
  want = np.array(want)
  assert (got[:, :2] >= 0).all() and (got[:, 2:] > 0).all()
  assert (got[:, :2] + got[:, 2:] <= SIDE).all()

  def statistics(boxes):
    top, left, height, width = boxes.T
    area, whole = height * width, (height == SIDE) & (width == SIDE)
    columns = [top, left, height, width, area, np.log(width / height), whole]
    columns = np.stack(columns, axis=1).astype(float)
    return columns.mean(0), columns.std(0)

  got, want = statistics(got), statistics(want)
  error = np.abs(got[0] - want[0]) / (want[1] / np.sqrt(2000) + 1e-9)
  assert error.max() < 4  # Standard errors.
  np.testing.assert_allclose(got[1], want[1], rtol=0.15, atol=0.01)


@pytest.mark.parametrize(
  ["ratio", "box"],
  [
    ((2.0, 3.0), (12, 0, 25, 50)),
    ((0.1, 0.5), (0, 12, 50, 25)),
  ],
)
def test_where_no_box_fits_the_central_one_is_taken(ratio, box):
  boxes = random_boxes(KEY, 3, 50, (0.9, 1.0), ratio)
  np.testing.assert_array_equal(boxes, [box] * 3)


def test_random_crops_are_those_of_the_boxes(monkeypatch):
  monkeypatch.setattr(augment, "random_boxes", random_boxes)
  monkeypatch.setattr(augment, "crop_and_resize", crop_and_resize)
  images = _images(len(BOXES), SIDE)
  got = augment.random_resized_crop(KEY, images, 28, (0.3, 0.6))
  boxes = random_boxes(KEY, len(BOXES), SIDE, (0.3, 0.6), RATIO)
  want = crop_and_resize(images, boxes, 28)
  np.testing.assert_allclose(got, want, atol=1e-6)
  assert got.shape == (6, 28, 28, 3) and got.dtype == jnp.float32


@pytest.mark.parametrize("probability", [0.0, 0.1, 1.0])
def test_flips_come_at_their_rate_and_leave_others_untouched(probability):
  images = _images(2000, 3)
  got = np.asarray(random_flip(KEY, images, probability))
  flipped = (got == images[:, :, ::-1]).all(axis=(1, 2, 3))
  same = (got == images).all(axis=(1, 2, 3))
  np.testing.assert_array_equal(flipped, ~same)
  assert abs(flipped.mean() - probability) < 0.05
  assert 0 < probability < 1 or flipped.mean() == probability


@pytest.mark.parametrize("probability", [0.0, 0.1, 1.0])
def test_greys_come_at_their_rate_and_leave_others_untouched(probability):
  images = _images(2000, 3)
  got = np.asarray(random_grayscale(KEY, images, probability))
  grey = np.tile(images @ [[0.299], [0.587], [0.114]], (1, 1, 1, 3))
  greyed = np.isclose(got, grey, atol=1e-6).all(axis=(1, 2, 3))
  same = (got == images).all(axis=(1, 2, 3))
  np.testing.assert_array_equal(greyed, ~same)
  assert abs(greyed.mean() - probability) < 0.05
  assert 0 < probability < 1 or greyed.mean() == probability


def _brightness(image, factor):
  return np.clip(image * factor, 0, 1)


def _contrast(image, factor):
  mean = (image @ [0.299, 0.587, 0.114]).mean()
  return np.clip(factor * image + (1 - factor) * mean, 0, 1)


def _saturation(image, factor):
  luma = (image @ [0.299, 0.587, 0.114])[..., None]
  return np.clip(factor * image + (1 - factor) * luma, 0, 1)


def _hue(image, turns):
  def turn(pixel):
    hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
    return colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value)

  return np.apply_along_axis(turn, -1, image)


CHANGES = (_brightness, _contrast, _saturation, _hue)


def _colours(count):
  """Noise, with pure colours, greys, black and white among it."""
  images = _images(count, 5)
  corners = np.array(list(itertools.product([0, 1], repeat=3)))
  images.reshape(count, 25, 3)[:, :8] = corners
  images.reshape(count, 25, 3)[:, 8] = 0.3
  return images


@pytest.mark.parametrize("change", range(4))
def test_each_change_agrees_with_torchvisions_formula(change):
  images = _colours(24)
  amounts = np.tile(np.float32([[1, 1, 1, 0]]), (24, 1))
  amounts[:, change] = np.linspace(0, 1.8, 24)
  if change == 3:
    amounts[:, 3] = np.linspace(-0.5, 0.5, 24)
  got = change_colours(
    images,
    amounts[:, :3],
    amounts[:, 3],
    np.tile(np.arange(3)[None], (24, 1)),
    np.arange(24) % 4,
  )
  for result, image, amount in zip(got, images, amounts[:, change]):
    want = CHANGES[change](image.astype(float), amount)
    np.testing.assert_allclose(result, want, atol=2e-6)


def test_changes_are_made_in_the_order_of_each_image():
  orders = list(itertools.permutations(range(4)))
  rng = np.random.default_rng(1)
  factors = np.float32(rng.uniform(0.2, 1.8, (24, 3)))
  turns = np.float32(rng.uniform(-0.5, 0.5, 24))
  blends = np.array([[c for c in order if c != 3] for order in orders])
  hue_after = np.array([order.index(3) for order in orders])
  images = _colours(24)
  got = change_colours(images, factors, turns, blends, hue_after)
  for i, order in enumerate(orders):
    want = images[i].astype(float)
    for change in order:
      want = CHANGES[change](want, [*factors[i], turns[i]][change])
    np.testing.assert_allclose(got[i], want, atol=1e-5)


def _draws(monkeypatch, images, reaches):
  """Returns what `colour_jitter` hands to `change_colours`."""
  monkeypatch.setattr(augment, "change_colours", lambda images, *drawn: drawn)
  jitter = jax.jit(lambda key, x: augment.colour_jitter(key, x, *reaches))
  return [np.asarray(array) for array in jitter(KEY, images)]


def test_jitter_draws_amounts_and_orders_for_each_image(monkeypatch):
  factors, turns, order, hue_after = _draws(
    monkeypatch, _images(4800, 1), (0.4, 0.2, 1.5, 0.1)
  )
  amounts = [*factors.T, turns]
  ranges = [(0.6, 1.4), (0.8, 1.2), (0.0, 2.5), (-0.1, 0.1)]
  for amount, (low, high) in zip(amounts, ranges):
    shares, _ = np.histogram(amount, bins=8, range=(low, high))
    assert shares.sum() == 4800  # None outside.
    assert abs(shares / 600 - 1).max() < 0.2
  assert np.abs(np.corrcoef(amounts) - np.eye(4)).max() < 0.06
  orders = np.column_stack([order, hue_after])
  orders, counts = np.unique(orders, axis=0, return_counts=True)
  assert len(orders) == 24
  np.testing.assert_array_equal(np.sort(orders[:, :3]), [[0, 1, 2]] * 24)
  assert abs(counts / 200 - 1).max() < 0.3


def test_jitter_of_no_reach_changes_nothing(monkeypatch):
  images = _colours(24)
  drawn = _draws(monkeypatch, images, (0, 0, 0, 0))
  got = change_colours(images, *drawn)
  np.testing.assert_allclose(got, images, atol=1e-6)


@pytest.fixture(scope="module")
def jigen():
  """JiGen's recipe as a step on one device, and the list of its traces."""
  return _jigen_step(jax.devices()[:1])


def _jigen_step(devices):
  traces = []
  shardings = sharding.make(devices)

  def apply(key, images):
    traces.append(1)
    return augment.augment_images(key, images, 16, RECIPES["jigen"])

  step = jax.jit(
    apply,
    in_shardings=(shardings.replicated, shardings.rows),
    out_shardings=shardings.rows,
  )
  put = lambda images: jax.device_put(images, shardings.rows)
  return lambda key, images: step(key, put(images)), traces


def test_the_key_and_the_position_decide(jigen):
  apply, _ = jigen
  images = _images(16, 24)
  images[:] = images[:1]
  first = np.asarray(apply(KEY, images))
  assert first.shape == (16, 16, 16, 3) and first.dtype == np.float32
  assert first.min() > -1e-6 and first.max() < 1 + 1e-6
  np.testing.assert_array_equal(apply(KEY, images), first)
  other = np.asarray(apply(jax.random.key(1), images))
  for i, j in itertools.combinations(range(16), 2):
    assert np.abs(first[i] - first[j]).max() > 0.01
  assert (np.abs(first - other).max(axis=(1, 2, 3)) > 0.01).all()


def test_the_size_of_the_batch_does_not_matter_to_an_image():
  few, many = (
    random_boxes(KEY, n, SIDE, (0.3, 0.6), RATIO) for n in (len(BOXES), 4000)
  )
  np.testing.assert_array_equal(few, many[: len(BOXES)])
  images = _images(2000, 3)
  few, many = (random_flip(KEY, images[:n], 0.5) for n in (3, 2000))
  np.testing.assert_array_equal(few, many[:3])


def test_eight_devices_augment_as_one_and_trace_once(jigen):
  images, results = _images(16, 24), []
  for devices, made in ((1, jigen), (8, _jigen_step(jax.devices()))):
    apply, traces = made
    results.append([apply(jax.random.key(seed), images) for seed in range(3)])
    assert len(traces) == 1
    assert len(results[-1][0].sharding.device_set) == devices
  np.testing.assert_allclose(*results, atol=1e-5)  # Sums differ in order.


def test_parts_draw_independently_of_one_another():
  """A flipped image loses its colour no more often than another."""
  images = np.tile(np.linspace(0, 1, 12, dtype=np.float32), (2000, 1))
  images = images.reshape(2000, 2, 2, 3)
  recipe = Recipe(flip=0.5, grayscale=0.5)
  apply = jax.jit(lambda key, x: augment.augment_images(key, x, 2, recipe))
  got = np.asarray(apply(KEY, images))
  flipped = got[:, 0, 0, 2] > got[:, 0, 1, 2]
  greyed = got[:, 0, 0, 0] == got[:, 0, 0, 2]
  assert abs(np.corrcoef(flipped, greyed)[0, 1]) < 0.1


def test_amplitudes_are_mixed_for_a_share_of_the_images():
  images = jax.random.uniform(jax.random.key(0), (64, 8, 8, 3))
  recipe = RECIPES["amplitude"]
  mix = lambda key: augment.augment_images(key, images, 8, recipe)
  found = jax.jit(mix)(jax.random.key(1))
  same = np.asarray(found == images).all(axis=(1, 2, 3))
  assert 20 < same.sum() < 44  # About half of them keep every bit.
  assert found.min() >= 0 and found.max() <= 1
