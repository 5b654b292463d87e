"""Networks with drawn variables, and inputs for them, for the tests here."""

import functools
import pathlib
import zlib

import jax
import numpy as np
from sklearn.datasets import load_sample_image

SHARED = pathlib.Path(__file__).parents[3] / "shared"


def drawn(model, *inputs, **flags):
  """Draws the variables of a model with numpy, since compiling init is slow.

  Kernels are random and depend on their path and shape only. Scales, variances
  and stds are 1, all else is 0.
  """
  init = functools.partial(model.init, **flags)
  shapes = jax.eval_shape(init, jax.random.key(0), *inputs)

  def draw(path, x):
    names = tuple(part.key for part in path)
    if names[-1] in ("kernel", "attention"):
      return _kernel("/".join(names), x.shape)
    return np.full(x.shape, names[-1] in ("scale", "var", "std"), x.dtype)

  return jax.tree_util.tree_map_with_path(draw, shapes)


@functools.cache
def _kernel(path, shape):
  """Draws a kernel that keeps the scale of activations through a ReLU."""
  rng = np.random.default_rng(zlib.crc32(path.encode()))
  kernel = rng.standard_normal(shape, np.float32)
  return kernel * np.sqrt(2 / np.prod(shape[:-1]), dtype=np.float32)


def photographs(count, size):
  """Crops scikit-learn's two photographs, normalised as for ImageNet."""
  pictures = [load_sample_image(n) for n in ("china.jpg", "flower.jpg")]
  rng = np.random.default_rng(0)
  crops = []
  for i in range(count):
    picture = pictures[i % 2]
    y, x = (rng.integers(0, n - size) for n in picture.shape[:2])
    crops.append(picture[y : y + size, x : x + size])
  mean, std = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])
  return ((np.stack(crops) / 255 - mean) / std).astype(np.float32)


def mixed_probs(count, num_domains=3):
  """Draws probabilities [count, num_domains] that differ between images."""
  e = np.exp(2 * np.random.default_rng(1).normal(size=(count, num_domains)))
  return (e / e.sum(axis=1, keepdims=True)).astype(np.float32)


def relative(got, want):
  """Returns the largest error relative to the largest value."""
  return np.abs(got - want).max() / np.abs(want).max()
