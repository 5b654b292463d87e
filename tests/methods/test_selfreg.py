"""SelfReg against its equations in numpy, and its permutations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from comen_jax.methods import selfreg
from comen_jax.methods.options.label_free import SelfReg

OPTIONS = SelfReg()
KEY = jax.random.key(7)
LABELS = jnp.asarray([2, 0, 1, 0, 2, 2, 0, 1, 3], jnp.int32)


def test_permutations_stay_within_the_class_and_reach_all_of_it():
  keys = jax.random.split(jax.random.key(0), 200)
  found = np.asarray(
    jax.vmap(selfreg.within_class, in_axes=(0, None))(keys, LABELS)
  )
  for permutation in found:
    assert sorted(permutation) == list(range(len(LABELS)))
    np.testing.assert_array_equal(LABELS[permutation], LABELS)
  # Image 0 meets every image of its class about equally often.
  meets, counts = np.unique(found[:, 0], return_counts=True)
  np.testing.assert_array_equal(meets, [0, 4, 5])
  assert counts.min() > 40


def _batch_norm(x):
  return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


def _project(params, features):
  x = features
  for i in (1, 2, 3):
    layer = params[f"dense{i}"]
    kernel, bias = (
      np.asarray(layer[n], np.float64) for n in ("kernel", "bias")
    )
    x = _batch_norm(x @ kernel + bias)
    if i < 3:
      x = np.maximum(x, 0)
  return x


def test_the_loss_is_its_equation():
  task = toy.toy_task()
  method = selfreg.create(task, OPTIONS)
  state, batch, key = toy.toy_state(method, task), toy.toy_batch(), KEY
  loss, (_, memory, metrics) = jax.jit(method.stages[0].loss)(state, batch, key)
  assert memory == {}

  _, first_key, second_key, mix_key = jax.random.split(key, 4)
  p = selfreg.within_class(first_key, batch.label)
  q = selfreg.within_class(second_key, batch.label)
  part = float(selfreg.arcsine(mix_key))
  f, z = toy.numpy_toy(state.params, batch.image)
  g = _project(state.params["projection"], f)
  mse = lambda a, b: np.mean([(x - y) ** 2 for x, y in zip(a.flat, b.flat)])
  z3 = part * z[p] + (1 - part) * z[q]
  g3 = part * g[p] + (1 - part) * g[q]
  ce = toy.numpy_cross_entropy(z, batch.label)
  want = ce + min(ce, 1) * (
    part * (mse(z, z[p]) + 0.3 * mse(f, g[p]))
    + (1 - part) * (mse(z, z3) + 0.3 * mse(f, g3))
  )
  np.testing.assert_allclose(loss, want, rtol=1e-5)
  np.testing.assert_allclose(metrics["loss_cls"], ce, rtol=1e-5)


def _jax_project(params, x):
  for i in (1, 2, 3):
    dense, norm = params[f"dense{i}"], params[f"norm{i}"]
    x = x @ dense["kernel"] + dense["bias"][None]
    x = (x - x.mean(axis=0)[None]) / jnp.sqrt(x.var(axis=0)[None] + 1e-5)
    x = x * norm["scale"][None] + norm["bias"][None]
    x = jax.nn.relu(x) if i < 3 else x
  return x


def test_both_sides_of_a_distance_have_a_gradient_its_factor_has_none():
  task = toy.toy_task()
  method = selfreg.create(task, OPTIONS)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  # What the network says is mostly right, so that the factor is below 1.
  logits = toy.numpy_toy(state.params, batch.image)[1]
  batch = batch.replace(label=jnp.asarray(logits.argmax(axis=1), jnp.int32))
  head = 5 * state.params["backbone"]["head"]
  params = {
    **state.params, "backbone": {**state.params["backbone"], "head": head}
  }  # fmt: skip

  def loss(params):
    at = state.replace(params=params)
    value, (_, _, metrics) = method.stages[0].loss(at, batch, KEY)
    return value, metrics["loss_cls"]

  got, loss_cls = jax.jit(jax.grad(loss, has_aux=True))(params)
  weight = float(loss_cls)
  assert 0.05 < weight < 0.95

  def by_hand(params):
    _, first_key, second_key, mix_key = jax.random.split(KEY, 4)
    p = selfreg.within_class(first_key, batch.label)
    q = selfreg.within_class(second_key, batch.label)
    part = selfreg.arcsine(mix_key)
    net = params["backbone"]
    f = jax.nn.relu(batch.image.reshape(toy.B, -1) @ net["kernel"])
    z, g = f @ net["head"], _jax_project(params["projection"], f)
    ce = -jax.nn.log_softmax(z)[jnp.arange(toy.B), batch.label].mean()
    mse = lambda a, b: jnp.square(a - b).mean()
    z3 = part * z[p] + (1 - part) * z[q]
    g3 = part * g[p] + (1 - part) * g[q]
    return ce + weight * (
      part * (mse(z, z[p]) + 0.3 * mse(f, g[p]))
      + (1 - part) * (mse(z, z3) + 0.3 * mse(f, g3))
    )

  want = jax.jit(jax.grad(by_hand))(params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
    got, want,
  )  # fmt: skip


def test_lambda_is_drawn_from_its_beta_distribution():
  keys = jax.random.split(jax.random.key(0), 4000)
  draws = np.sort(jax.vmap(selfreg.arcsine)(keys))
  want = np.random.default_rng(0).beta(0.5, 0.5, 4000)
  for share in (0.1, 0.25, 0.5, 0.9):
    assert np.quantile(draws, share) == pytest.approx(
      np.quantile(want, share), abs=0.03
    )


def test_large_features_keep_their_size_inside_the_projection():
  init = selfreg.Projection().init
  shapes = lambda size: (
    jax.eval_shape(lambda: init(jax.random.key(0), jnp.zeros((2, size))))[
      "params"
    ]["dense2"]["kernel"].shape
  )
  assert shapes(256) == (512, 512)
  assert shapes(2048) == (2048, 2048)
