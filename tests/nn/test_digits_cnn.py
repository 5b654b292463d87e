"""Compares the digits network with linen's layers; tests F_d and dtypes."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import drawn

from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.registry import build
from comen_jax.nn.style import style_statistics

SIZE = 16  # 64 features; 32 gives 256, and takes longer.


@functools.cache
def _setup(norm):
  model = build("digits_cnn", num_classes=5, norm=norm, num_domains=3)
  images = np.random.default_rng(0).normal(size=(12, SIZE, SIZE, 3))
  images = images.astype(np.float32)
  return model, drawn(model, images, train=True), images


@functools.partial(jax.jit, static_argnums=0)
def _train(model, variables, images, domain_probs=None):
  return model.apply(
    variables, images, True, domain_probs, mutable=["batch_stats"]
  )


@functools.partial(jax.jit, static_argnums=2)
def _reference(variables, images, norm):
  """Computes the four blocks with linen's layers and batch statistics."""
  params, x = variables["params"], images
  for i in range(1, 5):
    x = nn.Conv(64, (3, 3)).apply({"params": params[f"conv{i}"]}, x)
    if norm == "batch":
      affine = params[f"norm{i}"]
      x = (x - x.mean((0, 1, 2), keepdims=True)) / jnp.sqrt(
        x.var((0, 1, 2), keepdims=True) + 1e-5
      )
      x = x * affine["scale"].reshape(1, 1, 1, -1)
      x = x + affine["bias"].reshape(1, 1, 1, -1)
    x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
  features = x.reshape(len(images), -1)
  return features, nn.Dense(5).apply({"params": params["head"]}, features)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_agrees_with_linen_layers(norm):
  model, variables, images = _setup(norm)
  outputs, _ = _train(model, variables, images)
  features, logits = _reference(variables, images, norm)
  np.testing.assert_allclose(outputs.features, features, rtol=1e-3, atol=1e-3)
  np.testing.assert_allclose(outputs.logits, logits, rtol=1e-3, atol=1e-3)
  assert outputs.domain_logits is None

  # A network without SDNorm ignores given probabilities.
  probs = np.full((12, 3), 1 / 3, np.float32)
  same, _ = _train(model, variables, images, probs)
  np.testing.assert_array_equal(same.logits, outputs.logits)


def test_style_is_of_the_first_raw_convolution():
  model, variables, images = _setup("sdnorm")
  outputs, _ = _train(model, variables, images)
  first = {"params": variables["params"]["conv1"]}
  want = jax.jit(
    lambda images: style_statistics(nn.Conv(64, (3, 3)).apply(first, images))
  )(images)
  assert outputs.style.shape == (12, 128)
  np.testing.assert_allclose(outputs.style, want, rtol=1e-5, atol=1e-5)


def test_probabilities_are_the_predictors_unless_given():
  model, variables, images = _setup("sdnorm")
  assert "domain_predictor" in variables["params"]
  own, _ = _train(model, variables, images)
  assert own.domain_logits.shape == (12, 3)

  given = jax.nn.softmax(own.domain_logits)
  same, _ = _train(model, variables, images, given)
  np.testing.assert_allclose(same.logits, own.logits, rtol=1e-4, atol=1e-4)
  other, _ = _train(
    model, variables, images, np.eye(3, dtype=np.float32)[np.arange(12) % 3]
  )
  assert np.abs(other.logits - own.logits).max() > 1e-2
  np.testing.assert_allclose(
    other.domain_logits, own.domain_logits, rtol=1e-4, atol=1e-4
  )


def test_predictor_is_born_even_if_probabilities_are_given():
  model, variables, images = _setup("sdnorm")
  probs = np.full((12, 3), 1 / 3, np.float32)
  init = functools.partial(model.init, train=True, domain_probs=probs)
  born = jax.eval_shape(init, jax.random.key(0), images)
  assert jax.tree.map(jnp.shape, born) == jax.tree.map(jnp.shape, variables)


def test_uniform_probabilities_make_sdnorm_batch_norm():
  batch, variables, images = _setup("batch")
  model, born, _ = _setup("sdnorm")
  copies = {
    name: jax.tree.map(lambda x: np.stack([x] * 3), value)
    if name.startswith("norm")
    else value
    for name, value in variables["params"].items()
  }
  ours = {**born, "params": {**born["params"], **copies}}
  probs = np.full((12, 3), 1 / 3, np.float32)
  got, state = _train(model, ours, images, probs)
  want, expected = _train(batch, variables, images)
  np.testing.assert_allclose(got.logits, want.logits, rtol=1e-3, atol=1e-3)
  for i in range(1, 5):
    for name, value in expected["batch_stats"][f"norm{i}"].items():
      for branch in state["batch_stats"][f"norm{i}"][name]:
        np.testing.assert_allclose(branch, value, rtol=1e-3, atol=1e-3)


def test_classification_trains_the_predictor_and_the_images_style():
  model, variables, images = _setup("sdnorm")

  def loss(params):
    outputs, _ = _train(model, {**variables, "params": params}, images)
    return jnp.square(outputs.logits).mean()

  grads = jax.jit(jax.grad(loss))(variables["params"])
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(grads))
  assert all(
    np.abs(x).max() > 0 for x in jax.tree.leaves(grads["domain_predictor"])
  )


def test_an_image_of_32_gives_256_features_and_he_initialisation():
  model = DigitsCNN(num_classes=10)
  images = jnp.zeros((2, 32, 32, 3))
  init = functools.partial(model.init_with_output, train=False)
  outputs, _ = jax.eval_shape(init, jax.random.key(0), images)
  assert outputs.features.shape == (2, 256)
  assert outputs.logits.shape == (2, 10)

  @jax.jit
  def conv2(key):
    return model.init(key, images, train=False)["params"]["conv2"]

  born = conv2(jax.random.key(1))
  np.testing.assert_allclose(born["kernel"].std(), np.sqrt(2 / 576), rtol=0.03)
  assert not born["bias"].any()


@pytest.mark.parametrize("norm", ["none", "batch", "sdnorm"])
def test_bfloat16_computes_in_it_and_returns_float32(norm):
  model, variables, images = _setup(norm)
  half = DigitsCNN(5, norm=norm, dtype=jnp.bfloat16)
  outputs, state = _train(half, variables, images)
  full, _ = _train(model, variables, images)
  for leaf in jax.tree.leaves((outputs, state)):
    assert leaf.dtype == jnp.float32
  difference = np.abs(outputs.logits - full.logits).max()
  assert 0 < difference < 0.1 * np.abs(full.logits).max()


def test_unknown_names_are_refused_with_the_known_ones():
  with pytest.raises(ValueError, match=r"'layer'.*none.*batch.*sdnorm"):
    DigitsCNN(5, norm="layer").init(
      jax.random.key(0), jnp.ones((1, 16, 16, 3)), True
    )
  with pytest.raises(ValueError, match=r"'lenet'.*digits_cnn"):
    build("lenet", num_classes=5)
