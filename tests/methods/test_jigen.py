"""JiGen: its puzzles, its loss against numpy, and sizes that do not divide."""

import jax
import numpy as np
import pytest
import toy

from comen_jax.data import jigsaw
from comen_jax.errors import UserError
from comen_jax.methods import jigen
from comen_jax.methods.base import Setup
from comen_jax.methods.options.label_free import JiGen

KEY = jax.random.key(5)


def _setup(size):
  return Setup(
    "jigen",
    "resnet18",
    points=(),
    norm="batch",
    image_size=size,
    epochs=1,
    stage_shares=(1.0,),
  )


def _task_and_case(options):
  task = toy.toy_task()
  method = jigen.create(task, options)
  return task, method, toy.toy_state(method, task), toy.toy_batch()


def test_tiles_of_a_puzzle_put_back_are_the_image():
  task, _, _, batch = _task_and_case(JiGen())
  puzzle = jigen.make_puzzle(
    toy.SIZE, JiGen(grid=3, unshuffled=0.0, tile_grayscale=0.0)
  )
  got, order = jigen.shuffle(KEY, batch.image, puzzle, task.views)
  assert len(set(np.asarray(order))) > 3
  tiles = np.asarray(jigsaw.cut(got, 3))
  back = np.zeros_like(tiles)
  for i, o in enumerate(np.asarray(order)):
    for t in range(9):
      back[i, puzzle.orders[o, t]] = tiles[i, t]
  np.testing.assert_allclose(jigsaw.join(back, 3), batch.image, atol=1e-6)


def test_orders_have_their_probabilities():
  task = toy.toy_task()
  puzzle = jigen.make_puzzle(toy.SIZE, JiGen(grid=2, tile_grayscale=0.0))
  images = np.zeros((4000, 2, 2, 3), np.float32)
  _, order = jax.jit(
    lambda key: jigen.shuffle(key, images, puzzle, task.views)
  )(KEY)
  shares = np.bincount(order, minlength=24) / len(images)
  assert shares[0] == pytest.approx(0.9 + 0.1 / 24, abs=0.02)
  assert shares[1:].min() > 0  # 16 are expected of each.
  assert shares[1:].max() < 0.012


def test_tiles_lose_their_colour_one_by_one():
  task, _, _, batch = _task_and_case(JiGen())
  puzzle = jigen.make_puzzle(
    toy.SIZE, JiGen(grid=3, unshuffled=1.0, tile_grayscale=0.5)
  )
  got, order = jigen.shuffle(KEY, batch.image, puzzle, task.views)
  assert not order.any()
  tiles, before = (
    np.asarray(jigsaw.cut(task.views.pixels(x), 3)) for x in (got, batch.image)
  )
  grey = np.ptp(tiles, axis=-1).max(axis=(2, 3)) < 1e-6  # [B, 9]
  assert 0.3 < grey.mean() < 0.7
  luma = before @ np.float32([0.299, 0.587, 0.114])
  np.testing.assert_allclose(tiles[grey][..., 0], luma[grey], atol=1e-6)
  np.testing.assert_allclose(tiles[~grey], before[~grey], atol=1e-6)


@pytest.mark.parametrize("classify_shuffled", [True, False])
def test_the_loss_is_its_equation(classify_shuffled):
  options = JiGen(unshuffled=0.5, classify_shuffled=classify_shuffled)
  task, method, state, batch = _task_and_case(options)
  loss, (_, _, metrics) = jax.jit(method.stages[0].loss)(state, batch, KEY)

  puzzle = jigen.make_puzzle(toy.SIZE, options)
  assert puzzle.orders.shape == (31, 9)
  images, order = jigen.shuffle(
    jax.random.split(KEY)[1], batch.image, puzzle, task.views
  )
  features, logits = toy.numpy_toy(state.params, images)
  head = state.params["jigsaw"]
  order_logits = features @ np.asarray(head["kernel"]) + np.asarray(
    head["bias"]
  )
  used = np.asarray(order) == 0
  assert 0 < used.sum() < toy.B
  if classify_shuffled:
    used[:] = True
  ce = toy.numpy_cross_entropy(logits[used], np.asarray(batch.label)[used])
  of_order = toy.numpy_cross_entropy(order_logits, order)
  np.testing.assert_allclose(loss, ce + 0.7 * of_order, rtol=1e-5)
  right = (order_logits.argmax(axis=1) == np.asarray(order)).mean()
  np.testing.assert_allclose(metrics["order_accuracy"], right)


@pytest.mark.parametrize(
  ("size", "grid", "found"),
  [(32, 0, 4), (63, 0, 3), (222, 0, 3), (32, 2, 2), (224, 4, 4)],
)
def test_the_grid_follows_the_size_of_the_image(size, grid, found):
  options = JiGen(grid=grid)
  jigen.check(options, _setup(size))
  assert jigen.grid_of(size, options) == found


@pytest.mark.parametrize(("size", "grid", "way"), [(224, 0, 222), (32, 3, 30)])
def test_a_size_that_does_not_divide_is_one_line(size, grid, way):
  setup = _setup(size)
  with pytest.raises(UserError, match=f"image_size={way}") as caught:
    jigen.check(JiGen(grid=grid), setup)
  assert "\n" not in str(caught.value)
