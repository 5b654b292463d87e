"""JiGen: the network also solves a jigsaw puzzle of the image.

Carlucci, D'Innocente, Bucci, Caputo and Tommasi, "Domain generalization by
solving jigsaw puzzles", CVPR 2019.

Each image is cut into tiles, and the tiles are put in one of 31 orders: order 0
with probability beta, else any order with equal probability; order 0 leaves
them in their place. Each tile loses its colour with a small probability. A
second head tells the order from the features:

  L = CE(class) + w CE(order)

The paper classifies images in order 0 only. The published command of the
official code (fmcarlucci/JigenDG) classifies all images, and so do we by
default. Its 30 permutations of 3 x 3 tiles differ in 4 to 9 places; ours
(`data/jigsaw.py`) in 7 or more. Images of 32 pixels cannot be cut in thirds:
they have 4 x 4 tiles. With `augment="jigen"` (`data/recipes.py`) the whole
image also loses its colour with probability 0.1, so a tile is grey with
probability 0.19 there.
"""

from functools import partial
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data import jigsaw
from comen_jax.data.augment import random_grayscale
from comen_jax.data.batches import Batch
from comen_jax.data.views import Views
from comen_jax.errors import UserError
from comen_jax.losses import cross_entropy, masked_mean
from comen_jax.methods.base import Method, Setup, Stage, Task
from comen_jax.methods.options.label_free import JiGen as Options
from comen_jax.steps import Metrics, forward
from comen_jax.train_state import TrainState

_SMALL = 64  # Images below this size, in pixels, may have 4 x 4 tiles.


class Puzzle(NamedTuple):
  """How images become puzzles.

  Attributes:
    grid: number of tiles along a side.
    orders: int32 [R, grid^2], the orders of the tiles; order 0 is the image's
      own.
    unshuffled: probability that an image keeps order 0. The others draw one of
      all orders, order 0 among them.
    tile_grayscale: probability that a tile loses its colour.
  """

  grid: int
  orders: np.ndarray
  unshuffled: float
  tile_grayscale: float


def create(task: Task, options: Options) -> Method:
  """Makes JiGen: one stage over all epochs."""
  puzzle = make_puzzle(task.image_size, options)
  loss = partial(
    jigen_loss,
    model=task.model,
    views=task.views,
    puzzle=puzzle,
    options=options,
  )

  def init(key: jax.Array, variables: dict[str, Any]):
    features = jnp.zeros((1, task.feature_dim))
    return {"jigsaw": order_head(puzzle).init(key, features)["params"]}, {}

  return Method(
    stages=(Stage("train", task.epochs, loss),),
    init=init,
    describe=lambda state: {},
  )


def check(options: Options, setup: Setup) -> None:
  """Raises UserError if the tiles do not divide the image."""
  size, grid = setup.image_size, grid_of(setup.image_size, options)
  if size % grid:
    raise UserError(
      f"image_size={size}: {grid} x {grid} tiles of equal size do not fill the"
      f" image; give image_size={size // grid * grid}, or another grid"
    )


def grid_of(image_size: int, options: Options) -> int:
  """Number of tiles along a side."""
  thirds = image_size % 3 == 0 or image_size >= _SMALL
  return options.grid or (3 if thirds else 4)


def make_puzzle(image_size: int, options: Options) -> Puzzle:
  """Makes the puzzle that the options describe."""
  grid = grid_of(image_size, options)
  return Puzzle(
    grid,
    jigsaw.permutations(grid, options.permutations),
    options.unshuffled,
    options.tile_grayscale,
  )


def order_head(puzzle: Puzzle) -> nn.Dense:
  """Makes the head that maps features [B, D] to logits of the order [B, R]."""
  return nn.Dense(len(puzzle.orders))


def jigen_loss(
  state: TrainState,
  batch: Batch,
  key: jax.Array,
  *,
  model: nn.Module,
  views: Views,
  puzzle: Puzzle,
  options: Options,
) -> tuple[jax.Array, tuple[Any, Any, Metrics]]:
  """The cross-entropies of class and order."""
  drop_key, puzzle_key = jax.random.split(key)
  images, order = shuffle(puzzle_key, batch.image, puzzle, views)
  outputs, batch_stats = forward(
    model, state, batch.replace(image=images), drop_key
  )
  of_class = cross_entropy(outputs.logits, batch.label)
  classified = jnp.ones_like(order) if options.classify_shuffled else order == 0
  loss_cls = masked_mean(of_class, classified)
  logits = order_head(puzzle).apply(
    {"params": state.params["jigsaw"]}, outputs.features
  )
  loss_order = cross_entropy(logits, order).mean()
  metrics = {
    "loss_cls": loss_cls,
    "loss_order": loss_order,
    "order_accuracy": (logits.argmax(axis=1) == order).mean(),
  }
  loss = loss_cls + options.order_weight * loss_order
  return loss, (batch_stats, state.memory, metrics)


def shuffle(
  key: jax.Array, images: jax.Array, puzzle: Puzzle, views: Views
) -> tuple[jax.Array, jax.Array]:
  """Makes a puzzle of each image.

  Args:
    key: random key, fresh in each step.
    images: [B, H, W, 3], normalised.
    puzzle: orders and probabilities.
    views: gives the pixels, in which a tile loses its colour.

  Returns:
    The images [B, H, W, 3], normalised, and their orders int32 [B].
  """
  chex.assert_rank(images, 4)
  order_key, keep_key, colour_key = jax.random.split(key, 3)
  B, T = len(images), puzzle.grid**2
  order = jax.random.randint(order_key, (B,), 0, len(puzzle.orders))
  keep = jax.random.bernoulli(keep_key, puzzle.unshuffled, (B,))
  order = jnp.where(keep, 0, order)
  tiles = jigsaw.cut(views.pixels(images), puzzle.grid)
  places = jnp.asarray(puzzle.orders)[order][:, :, None, None, None]
  tiles = jnp.take_along_axis(tiles, places, axis=1)
  if puzzle.tile_grayscale:
    flat = tiles.reshape(B * T, *tiles.shape[2:])
    flat = random_grayscale(colour_key, flat, puzzle.tile_grayscale)
    tiles = flat.reshape(tiles.shape)
  return views.normalise(jigsaw.join(tiles, puzzle.grid)), order
