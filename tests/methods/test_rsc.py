"""RSC against the official steps written in numpy, with jax's gradient."""

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from conftest import load_config

from comen_jax import config as config_lib
from comen_jax.data.batches import Batch
from comen_jax.errors import UserError
from comen_jax.methods import rsc
from comen_jax.methods.options.label_free import Rsc
from comen_jax.nn.backbone import Outputs
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.resnet import ResNet

B, K, C = 8, 3, 5


class OneMap(nn.Module):
  """A feature map and a linear head, which sees averages or the whole map."""

  pooled: bool
  head = "head"
  points = ("layer1", "features")

  @nn.compact
  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    x = images if enter else nn.relu(nn.Dense(C, name="body")(images))
    if tap and not enter:
      x = tap("layer1", x)
    features = x.mean((1, 2)) if self.pooled else x.reshape(len(x), -1)
    logits = nn.Dense(K, name="head", kernel_init=nn.initializers.normal(2.0))
    return Outputs(features, logits(features), None, None)


def made_task(pooled):
  return toy.toy_task(model=OneMap(pooled), image_size=3)


def made_batch():
  rng = np.random.default_rng(0)
  return Batch(
    image=jnp.asarray(rng.normal(size=(B, 3, 3, 3)), jnp.float32),
    label=jnp.asarray([0, 1, 2, 0, 1, 2, 0, 0], jnp.int32),
    row=jnp.arange(B),
    mask=jnp.ones(B),
  )


@pytest.mark.parametrize(
  ("model", "shape"),
  [
    (DigitsCNN(K, norm="none"), (2, 2, 2, 64)),
    (ResNet(K, depth=10), (2, 3, 3, 512)),
    (OneMap(True), (2, 3, 3, C)),
  ],
)
def test_scores_from_the_heads_weights_are_the_mean_gradient(model, shape):
  point = model.points[-2]
  rng = np.random.default_rng(1)
  x = jnp.asarray(rng.normal(size=shape), jnp.float32)
  labels = jnp.array([2, 0])
  variables = model.init(jax.random.key(0), x, False, enter=point)

  def own_logits(x):
    logits = model.apply(variables, x, False, enter=point).logits
    return logits[jnp.arange(2), labels].sum()

  want = jax.grad(own_logits)(x).mean(axis=(1, 2))
  kernel = variables["params"][model.head]["kernel"]
  found = rsc.channel_scores(kernel, labels, x)
  np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-7)


def numpy_mask(x, gradient, positions):
  """The mask of one image x [H, W, C], as the official code makes it."""
  scores = gradient.mean(axis=(0, 1))
  if positions:
    values = (x * scores).sum(axis=2).reshape(-1)
    bound = sorted(values, reverse=True)[math.ceil(len(values) / 3)]
    mask = np.where(values > bound, 0, 1).reshape(*x.shape[:2], 1)
  else:
    bound = sorted(scores, reverse=True)[math.ceil(len(scores) / 3.2)]
    mask = np.where(scores > bound, 0, 1).reshape(1, 1, -1)
  return np.broadcast_to(mask, x.shape)


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize(("step", "share"), [(0, 0.3), (20, 0.5)])
@pytest.mark.parametrize("positions", [True, False])
def test_the_loss_is_the_official_one(pooled, step, share, positions):
  task, batch = made_task(pooled), made_batch()
  method = rsc.create(task, Rsc(position_probability=float(positions)))
  state = toy.toy_state(method, task)
  state = state.replace(step=jnp.asarray(step, jnp.int32))
  loss, (_, _, metrics) = jax.jit(method.stages[0].loss)(
    state, batch, jax.random.key(0)
  )

  params = jax.tree.map(np.asarray, state.params["backbone"])
  image = np.asarray(batch.image)
  x = np.maximum(image @ params["body"]["kernel"] + params["body"]["bias"], 0)
  forget = lambda x: x.mean((1, 2)) if pooled else x.reshape(len(x), -1)
  logits = lambda x: forget(x) @ params["head"]["kernel"]  # Its bias is 0.
  own = lambda x: logits(x)[jnp.arange(B), batch.label].sum()
  gradient = np.asarray(jax.grad(own)(jnp.asarray(x)))
  mask = np.stack([numpy_mask(*pair, positions) for pair in zip(x, gradient)])
  before, after = (toy.softmax(logits(m)) for m in (x, x * mask))
  fall = (before - after)[np.arange(B), batch.label] - 1e-4
  fall = np.where(fall > 0, fall, 0)
  bound = sorted(fall, reverse=True)[round(B * share)]
  muted = fall > bound
  assert muted.any() and not muted.all()
  mask[~muted] = 1
  want = toy.numpy_cross_entropy(logits(x * mask), batch.label)
  np.testing.assert_allclose(loss, want, rtol=1e-4)
  np.testing.assert_allclose(metrics["muted_images"], muted.mean())


def test_what_is_as_large_as_the_first_that_stays_stays():
  scores = jnp.array([[1.0, 5, 3, 4], [2, 2, 2, 2], [9, 9, 9, 1]])
  np.testing.assert_array_equal(
    rsc.keep_small(scores, 0.5), [[1, 0, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
  )
  # Never all: the smallest of them stays.
  np.testing.assert_array_equal(rsc.keep_small(scores[:1], 1.0), [[1, 0, 0, 0]])
  assert rsc.keep_small(jnp.ones((2, 1)), 1 / 3).tolist() == [[1], [1]]


def test_masks_carry_no_gradient():
  task, batch = made_task(False), made_batch()
  method = rsc.create(task, Rsc(image_share=0.99, position_probability=1.0))
  state = toy.toy_state(method, task)

  def loss(params):
    moved = state.replace(params=params)
    return method.stages[0].loss(moved, batch, jax.random.key(0))[0]

  loss = jax.jit(loss)
  gradient = jax.jit(jax.grad(loss))(state.params)
  # A small step changes no mask, so the difference quotient is the gradient.
  plus, minus = (
    jax.tree.map(lambda p, e=e: p + e, state.params) for e in (1e-3, -1e-3)
  )
  slope = (loss(plus) - loss(minus)) / 2e-3
  total = sum(g.sum() for g in jax.tree.leaves(gradient))
  assert abs(total) > 0.1
  np.testing.assert_allclose(slope, total, rtol=2e-2)


def test_mirrored_copies_count_as_images_of_the_batch():
  task, batch = made_task(True), made_batch()
  loss = lambda batch, mirror: jax.jit(
    rsc.create(task, Rsc(mirror=mirror)).stages[0].loss
  )(toy.toy_state(rsc.create(task, Rsc()), task), batch, jax.random.key(3))[0]
  twice = batch.replace(
    image=jnp.concatenate([batch.image, batch.image[:, :, ::-1]]),
    label=jnp.concatenate([batch.label, batch.label]),
  )
  np.testing.assert_allclose(loss(batch, True), loss(twice, False), rtol=1e-6)


def test_alexnet_is_refused_in_one_line():
  config = load_config("vlcs")
  config.method, config.pretrained = "rsc", ""
  with pytest.raises(UserError, match="backbone='alexnet': rsc supports digit"):
    config_lib.check(config)
