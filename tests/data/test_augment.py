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

KEY = jax.random.key(0)
random_boxes = jax.jit(augment.random_boxes, static_argnums=(1, 2, 3, 4))
crop_and_resize = jax.jit(augment.crop_and_resize, static_argnums=2)
change_colours = jax.jit(augment.change_colours)
SQUARE = (3 / 4, 4 / 3)  # Ratios by default.


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
  got = augment.resize(np.float32(picture / 255)[None], size)
  error = np.abs(got[0] - _pillow(picture, size))
  assert error.mean() < 0.5 / 255  # What rounding to whole pixels leaves.
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
  picture = picture(64)
  images = np.float32(np.tile(picture[None], (len(BOXES), 1, 1, 1)) / 255)
  crops = crop_and_resize(images, BOXES, 28)
  for (top, left, height, width), crop in zip(BOXES, crops):
    box = picture[top : top + height, left : left + width]
    error = np.abs(crop - _pillow(box, 28))
    assert error.mean() < 0.5 / 255
    assert error.max() < 2 / 255


def test_a_tpus_bfloat16_passes_err_by_less_than_one_level(monkeypatch):
  images = _images(len(BOXES), 64)
  images[1], images[2] = 0, 1
  exact = crop_and_resize(images, BOXES, 28)
  einsum = jnp.einsum

  def rough_einsum(spec, *arrays):
    rounded = [jax.lax.reduce_precision(a, 8, 7) for a in arrays]
    return einsum(spec, *rounded)

  monkeypatch.setattr(jnp, "einsum", rough_einsum)
  rough = augment.crop_and_resize(images, BOXES, 28)
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
  got = np.asarray(random_boxes(KEY, 4000, 50, scale, SQUARE))
  rng = random.Random(0)
  want = [_torchvision_box(rng, 50, scale, SQUARE) for _ in range(4000)]
  want = np.array(want)
  assert (got[:, :2] >= 0).all() and (got[:, 2:] > 0).all()
  assert (got[:, :2] + got[:, 2:] <= 50).all()

  def statistics(boxes):
    top, left, height, width = boxes.T
    area, whole = height * width, (height == 50) & (width == 50)
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


def test_random_crops_are_those_of_the_boxes():
  images = _images(4, 24)
  crop = jax.jit(augment.random_resized_crop, static_argnums=(2, 3))
  got = crop(KEY, images, 16, (0.3, 0.6))
  boxes = random_boxes(KEY, 4, 24, (0.3, 0.6), SQUARE)
  want = crop_and_resize(images, boxes, 16)
  np.testing.assert_allclose(got, want, atol=1e-6)
  assert got.shape == (4, 16, 16, 3) and got.dtype == jnp.float32


@pytest.mark.parametrize("probability", [0.0, 0.1, 1.0])
def test_flips_come_at_their_rate_and_leave_others_untouched(probability):
  images = _images(1000, 3)
  got = np.asarray(augment.random_flip(KEY, images, probability))
  flipped = (got == images[:, :, ::-1]).all(axis=(1, 2, 3))
  same = (got == images).all(axis=(1, 2, 3))
  np.testing.assert_array_equal(flipped, ~same)
  assert abs(flipped.mean() - probability) < 0.05
  assert 0 < probability < 1 or flipped.mean() == probability


@pytest.mark.parametrize("probability", [0.0, 0.1, 1.0])
def test_greys_come_at_their_rate_and_leave_others_untouched(probability):
  images = _images(1000, 3)
  got = np.asarray(augment.random_grayscale(KEY, images, probability))
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
  images = _colours(9)
  amounts = np.tile(np.float32([[1, 1, 1, 0]]), (9, 1))
  amounts[:, change] = np.linspace(0, 1.8, 9)
  if change == 3:
    amounts[:, 3] = np.linspace(-0.5, 0.5, 9)
  got = change_colours(
    images,
    amounts[:, :3],
    amounts[:, 3],
    np.tile(np.arange(3)[None], (9, 1)),
    np.arange(9) % 4,
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


def test_jitter_draws_amounts_and_orders_for_each_image(monkeypatch):
  drawn = {}

  def record(images, factors, turns, order, hue_after):
    drawn.update(factors=factors, turns=turns, order=order, after=hue_after)
    return images

  monkeypatch.setattr(augment, "change_colours", record)
  augment.colour_jitter(KEY, _images(4800, 1), 0.4, 0.2, 1.5, 0.1)
  amounts = [*drawn["factors"].T, drawn["turns"]]
  ranges = [(0.6, 1.4), (0.8, 1.2), (0.0, 2.5), (-0.1, 0.1)]
  for amount, (low, high) in zip(amounts, ranges):
    shares, _ = np.histogram(amount, bins=8, range=(low, high))
    assert shares.sum() == 4800  # None outside.
    assert abs(shares / 600 - 1).max() < 0.2
  assert np.abs(np.corrcoef(amounts) - np.eye(4)).max() < 0.06
  orders = np.column_stack([drawn["order"], drawn["after"]])
  orders, counts = np.unique(orders, axis=0, return_counts=True)
  assert len(orders) == 24
  np.testing.assert_array_equal(np.sort(orders[:, :3]), [[0, 1, 2]] * 24)
  assert abs(counts / 200 - 1).max() < 0.3


def test_jitter_of_no_reach_changes_nothing():
  images = _colours(4)
  jitter = jax.jit(augment.colour_jitter, static_argnums=(2, 3, 4, 5))
  got = jitter(KEY, images, 0, 0, 0, 0)
  np.testing.assert_allclose(got, images, atol=1e-6)


def test_jigens_recipe_is_pinned():
  recipe = {"crop_scale": (0.8, 1.0), "flip": 0.5, "jitter": 0.4, "hue": 0.4}
  assert recipe == augment.RECIPES["mmld"]
  assert recipe | {"grayscale": 0.1} == augment.RECIPES["jigen"]


def _jigen(key, images):
  return augment.augment_images(key, images, 16, **augment.RECIPES["jigen"])


def test_the_key_and_the_position_decide():
  images = _images(8, 24)
  images[:] = images[:1]
  apply = jax.jit(_jigen)
  first = np.asarray(apply(KEY, images))
  assert first.shape == (8, 16, 16, 3) and first.dtype == np.float32
  assert first.min() > -1e-6 and first.max() < 1 + 1e-6
  np.testing.assert_array_equal(apply(KEY, images), first)
  other = np.asarray(apply(jax.random.key(1), images))
  for i, j in itertools.combinations(range(8), 2):
    assert np.abs(first[i] - first[j]).max() > 0.01
  assert (np.abs(first - other).max(axis=(1, 2, 3)) > 0.01).all()


def test_the_size_of_the_batch_does_not_matter_to_an_image():
  few, many = (random_boxes(KEY, n, 24, (0.3, 0.6), SQUARE) for n in (3, 8))
  np.testing.assert_array_equal(few, many[:3])
  images = _images(8, 2)
  few, many = (augment.random_flip(KEY, images[:n]) for n in (3, 8))
  np.testing.assert_array_equal(few, many[:3])


def test_eight_devices_augment_as_one_and_trace_once():
  images, results, traces = _images(16, 24), [], []

  def apply(key, images):
    traces.append(1)
    return _jigen(key, images)

  for devices in (jax.devices()[:1], jax.devices()):
    shardings = sharding.make(devices)
    step = jax.jit(
      apply,
      in_shardings=(shardings.replicated, shardings.rows),
      out_shardings=shardings.rows,
    )
    rows = jax.device_put(images, shardings.rows)
    traces.clear()
    results.append([step(jax.random.key(seed), rows) for seed in range(3)])
    assert len(traces) == 1
    assert len(results[-1][0].sharding.device_set) == len(devices)
  np.testing.assert_allclose(*results, atol=1e-5)  # Sums differ in order.


def test_parts_draw_independently_of_one_another():
  """A flipped image is greyed no more often than another."""
  images = np.tile(np.linspace(0, 1, 12, dtype=np.float32), (2000, 1))
  images = images.reshape(2000, 2, 2, 3)
  got = augment.augment_images(KEY, images, 2, flip=0.5, grayscale=0.5)
  got = np.asarray(got)
  flipped = got[:, 0, 0, 2] > got[:, 0, 1, 2]
  greyed = got[:, 0, 0, 0] == got[:, 0, 0, 2]
  assert abs(np.corrcoef(flipped, greyed)[0, 1]) < 0.1
