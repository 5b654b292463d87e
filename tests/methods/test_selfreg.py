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


def test_the_factor_of_the_regularisation_has_no_gradient():
  """With its weight held fixed by hand, the gradient is the same."""
  task = toy.toy_task()
  method = selfreg.create(task, OPTIONS)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  # A far head, so that the cross-entropy is well below 1 or above it.
  head = 50 * state.params["backbone"]["head"]
  params = {
    **state.params, "backbone": {**state.params["backbone"], "head": head}
  }  # fmt: skip

  def parts(params):
    loss, (_, _, m) = selfreg.selfreg_loss(
      state.replace(params=params), batch, KEY, model=task.model,
      options=OPTIONS,
    )  # fmt: skip
    return loss, m

  metrics = jax.jit(parts)(params)[1]
  weight = float(jnp.minimum(metrics["loss_cls"], 1.0))

  def by_hand(params):
    m = parts(params)[1]
    return m["loss_cls"] + weight * (
      m["loss_logits"] + OPTIONS.feature_weight * m["loss_features"]
    )

  got = jax.jit(jax.grad(lambda p: parts(p)[0]))(params)
  want = jax.jit(jax.grad(by_hand))(params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
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
