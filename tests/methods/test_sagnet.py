"""SagNet: its two randomisations in numpy, and which loss trains what."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import toy
from jax.test_util import check_grads

from comen_jax.methods import sagnet
from comen_jax.methods.options.label_free import SagNet
from comen_jax.nn.backbone import Outputs
from comen_jax.nn.batch_norm import BatchNorm
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.resnet import ResNet

KEY = jax.random.key(6)


def _maps():
  x = np.random.default_rng(0).normal(size=(4, 3, 3, 2))
  return (2 * x + np.arange(4)[:, None, None, None]).astype(np.float32)


def _style(values):
  """Mean and unbiased variance of one channel of one image, one by one."""
  mean = sum(values) / len(values)
  return mean, sum((v - mean) ** 2 for v in values) / (len(values) - 1)


def test_style_randomisation_mixes_means_and_variances():
  x = _maps()
  order_key, part_key = jax.random.split(KEY)
  other = np.asarray(jax.random.permutation(order_key, 4))
  part = np.asarray(jax.random.uniform(part_key, (4, 1, 1, 1))).reshape(4)
  want = np.zeros(x.shape)
  for i, c in np.ndindex(4, 2):
    mean, var = _style(x[i, ..., c].ravel())
    mean2, var2 = _style(x[other[i], ..., c].ravel())
    content = (x[i, ..., c] - mean) / np.sqrt(var + 1e-5)
    mixed = part[i] * var + (1 - part[i]) * var2
    want[i, ..., c] = content * np.sqrt(mixed + 1e-5)
    want[i, ..., c] += part[i] * mean + (1 - part[i]) * mean2
  got = jax.jit(sagnet.randomise_style)(KEY, x)
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_content_randomisation_keeps_the_style():
  x = _maps()
  other = np.asarray(jax.random.permutation(KEY, 4))
  assert (other != np.arange(4)).any()
  got = np.asarray(jax.jit(sagnet.randomise_content)(KEY, x))
  for i, c in np.ndindex(4, 2):
    mean, var = _style(x[i, ..., c].ravel())
    mean2, var2 = _style(x[other[i], ..., c].ravel())
    content = (x[other[i], ..., c] - mean2) / np.sqrt(var2 + 1e-5)
    want = content * np.sqrt(var + 1e-5) + mean
    np.testing.assert_allclose(got[i, ..., c], want, rtol=1e-4, atol=1e-5)


def test_the_gradient_flows_through_the_mixed_styles():
  randomise = lambda x: sagnet.randomise_style(KEY, x)
  check_grads(
    jax.jit(randomise), (_maps(),), 1, ["rev"], atol=0.03, rtol=0.03, eps=1e-2
  )


def test_no_gradient_flows_through_the_random_content():
  x = jnp.asarray(_maps())
  back = np.random.default_rng(1).normal(size=x.shape).astype(np.float32)
  other = np.asarray(jax.random.permutation(KEY, 4))
  _, _, content = sagnet.separate(x[other])

  def by_hand(x):
    mean, var, _ = sagnet.separate(x)
    return (back * (content * jnp.sqrt(var + 1e-5) + mean)).sum()

  total = lambda x: (back * sagnet.randomise_content(KEY, x)).sum()
  got, want = jax.jit(lambda x: (jax.grad(total)(x), jax.grad(by_hand)(x)))(x)
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_an_image_alone_keeps_its_style_and_content():
  x = _maps()[:1]
  np.testing.assert_allclose(sagnet.randomise_style(KEY, x), x, atol=1e-5)
  np.testing.assert_allclose(sagnet.randomise_content(KEY, x), x, atol=1e-5)


def test_ignorance_is_least_for_a_uniform_prediction():
  logits = np.float32([[0, 0], [3, -3]])
  p = toy.softmax(logits)
  want = [-(np.log(a + 1e-5) + np.log(b + 1e-5)) / 2 for a, b in p]
  got = sagnet.ignorance(logits)
  np.testing.assert_allclose(got, want, rtol=1e-5)
  assert got[0] < got[1]


def test_dropout_keeps_the_mean():
  got = np.asarray(sagnet.dropout(KEY, jnp.ones((100, 100)), 0.25))
  assert set(np.unique(got)) == {np.float32(0), np.float32(1 / 0.75)}
  assert got.mean() == pytest.approx(1, abs=0.02)


class Net(nn.Module):
  """Three layers, each with a norm: they compile faster than a real network."""

  @nn.compact
  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    tap = tap or (lambda name, x: x)
    x = images
    for i in (3,) if enter == "layer2" else (1, 2, 3):
      x = nn.Dense(4, name=f"conv{i}")(x)
      x = BatchNorm(name=f"norm{i}")(x, use_running_average=not train)
      x = tap(f"layer{i}", nn.relu(x))
    features = tap("features", x.mean(axis=(1, 2)))
    logits = nn.Dense(toy.K, name="head")(features)
    return Outputs(features, logits, None, None)


@jax.jit
def _step(weight, style_scale):
  """Parameters, loss, gradient and statistics of a step; compiled once."""
  task = toy.toy_task(model=Net())
  options = SagNet(adversary_weight=weight, adversary_clip=0.01)
  method = sagnet.create(task, options)
  state = toy.toy_state(method, task)
  style = jax.tree.map(lambda x: style_scale * x, state.params["style"])
  params = {**state.params, "style": style}
  loss = lambda params: method.stages[0].loss(
    state.replace(params=params), toy.toy_batch(), KEY
  )
  (value, (stats, _, _)), gradient = jax.value_and_grad(loss, has_aux=True)(
    params
  )
  return params, value, gradient, stats


def _gradient(weight, style_scale):
  return _step(weight, style_scale)[2]


def _layer(params, number, x):
  """A layer in training mode, and the statistics of the batch."""
  conv, norm = (params[f"{name}{number}"] for name in ("conv", "norm"))
  x = x @ np.asarray(conv["kernel"], np.float64) + conv["bias"]
  mean, var = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
  x = (x - mean) / np.sqrt(var + 1e-5) * norm["scale"] + norm["bias"]
  return np.maximum(x, 0), {"mean": 0.1 * mean, "var": 0.9 + 0.1 * var}


def test_the_loss_is_its_equation_and_keeps_the_content_paths_statistics():
  params, loss, _, found = jax.tree.map(np.asarray, _step(0.5, 3.0))
  _, sr_key, cr_key, *drop_keys = jax.random.split(KEY, 5)
  batch, stats, net = toy.toy_batch(), {}, params["backbone"]
  x = np.asarray(batch.image, np.float64)
  for i in (1, 2):
    x, stats[f"norm{i}"] = _layer(net, i, x)
  x = x.astype(np.float32)

  def path(params, x, drop_key):
    x, stats = _layer(params, 3, np.asarray(x, np.float64))
    features = x.mean(axis=(1, 2))
    kept = np.asarray(jax.random.bernoulli(drop_key, 0.5, features.shape))
    head = params["head"]
    return (2 * kept * features) @ head["kernel"] + head["bias"], stats

  content, stats["norm3"] = path(
    net, sagnet.randomise_style(sr_key, x), drop_keys[0]
  )
  style, others = path(
    params["style"], sagnet.randomise_content(cr_key, x), drop_keys[1]
  )
  want = toy.numpy_cross_entropy(content, batch.label)
  want += toy.numpy_cross_entropy(style, batch.label)
  want += 0.5 * -np.log(toy.softmax(style) + 1e-5).mean()
  np.testing.assert_allclose(loss, want, rtol=1e-4)
  close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
  jax.tree.map(close, found, stats)
  assert np.abs(others["mean"] - stats["norm3"]["mean"]).max() > 0.01


def test_each_loss_trains_its_own_parameters():
  without, within = _gradient(0.0, 1.0), _gradient(100.0, 1.0)
  change = jax.tree.map(lambda a, b: np.asarray(b - a), without, within)
  trained = {
    layer
    for layer, leaves in change["backbone"].items()
    if any(np.abs(leaf).max() > 1e-6 for leaf in leaves.values())
  }
  # The adversary reaches the norms before the split, not a convolution.
  assert trained == {"norm1", "norm2"}
  assert {*change["backbone"]["norm1"]} == {"scale", "bias"}
  norms = {name: change["backbone"][name] for name in ("norm1", "norm2")}
  assert float(optax.tree.norm(norms)) == pytest.approx(0.01, rel=1e-3)
  # Nor the style path, which its own loss trains.
  assert float(optax.tree.norm(change["style"])) < 1e-6
  assert all(
    float(optax.tree.norm(tree)) > 1e-4 for tree in without["style"].values()
  )
  # And that loss does not reach the backbone.
  other = _gradient(0.0, 3.0)["backbone"]
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6),
    without["backbone"], other,
  )  # fmt: skip


def test_the_style_path_has_copies_of_the_layers_after_the_split():
  model = DigitsCNN(toy.K, norm="batch")
  task = toy.toy_task(model=model, image_size=16)
  params = toy.toy_state(sagnet.create(task, SagNet()), task).params
  assert {*params["style"]} == {"conv3", "norm3", "conv4", "norm4", "head"}
  for name, tree in params["style"].items():
    jax.tree.map(np.testing.assert_array_equal, tree, params["backbone"][name])


def test_the_norms_before_the_split_of_a_resnet():
  model = ResNet(toy.K, depth=10)
  after = sagnet.layers_after(model, "layer2", 32)
  assert {*after} == {"layer3_0", "layer4_0", "fc"}
  params = jax.eval_shape(
    lambda: model.init(KEY, jnp.zeros((1, 32, 32, 3)), train=False)
  )["params"]
  marks = sagnet.norms_before(params, after)
  found = {
    "/".join(key.key for key in keys)
    for keys, marked in jax.tree_util.tree_leaves_with_path(marks)
    if marked
  }
  norms = ("bn1", "layer1_0/bn1", "layer1_0/bn2", "layer2_0/bn1")
  norms += ("layer2_0/bn2", "layer2_0/downsample_1")
  assert found == {f"{n}/{leaf}" for n in norms for leaf in ("scale", "bias")}
