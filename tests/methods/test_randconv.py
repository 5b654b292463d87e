"""RandConv's loss against its equation in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from comen_jax.data.random_conv import random_convolution
from comen_jax.methods import randconv
from comen_jax.methods.options.label_free import RandConv


def _disagreement(logits):
  p = toy.softmax(logits)
  V, B, K = p.shape
  total = 0.0
  for i in range(B):
    mean = [sum(p[v, i, k] for v in range(V)) / V for k in range(K)]
    for v in range(V):
      total += sum(p[v, i, k] * np.log(p[v, i, k] / mean[k]) for k in range(K))
  return total / (V * B)


def test_disagreement_is_0_for_equal_views_and_log_of_views_at_most():
  disagreement = jax.jit(randconv.disagreement)
  one = np.random.default_rng(0).normal(size=(1, 4, 3)).astype(np.float32)
  equal = disagreement(np.tile(one, (3, 1, 1)))
  np.testing.assert_allclose(equal, np.zeros(4), atol=1e-6)
  sure = 100 * np.eye(3, dtype=np.float32)[:, None, :]
  np.testing.assert_allclose(disagreement(sure), [np.log(3)], rtol=1e-5)
  gradient = jax.jit(jax.grad(lambda z: randconv.disagreement(z).sum()))(sure)
  assert np.isfinite(gradient).all()


@pytest.mark.parametrize("options", [RandConv(), RandConv(5.0, False, 0.5)])
def test_the_loss_is_its_equation_over_three_draws_of_the_image(options):
  task = toy.toy_task()
  method = randconv.create(task, options)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  key = jax.random.key(3)
  loss, _ = jax.jit(method.stages[0].loss)(state, batch, key)

  draws = [
    random_convolution(k, batch.image, mix=options.mix, keep=options.keep)
    for k in jax.random.split(key, 4)[1:]
  ]
  logits = np.stack([toy.numpy_toy(state.params, x)[1] for x in draws])
  want = toy.numpy_cross_entropy(logits[0], batch.label)
  want += options.weight * _disagreement(logits)
  np.testing.assert_allclose(loss, want, rtol=1e-4)
  assert np.abs(draws[0] - draws[1]).max() > 0.1


def test_the_gradient_flows_through_all_three_draws():
  task, key = toy.toy_task(), jax.random.key(3)
  method = randconv.create(task, RandConv())
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  draws = [
    random_convolution(k, batch.image, mix=True, keep=0.0)
    for k in jax.random.split(key, 4)[1:]
  ]

  def by_hand(params):
    kernel, head = params["backbone"]["kernel"], params["backbone"]["head"]
    p = [
      jax.nn.softmax(jax.nn.relu(x.reshape(toy.B, -1) @ kernel) @ head)
      for x in draws
    ]
    mean = (p[0] + p[1] + p[2]) / 3
    apart = sum((q * jnp.log(q / mean)).sum(axis=1).mean() for q in p) / 3
    return 10 * apart - jnp.log(p[0][jnp.arange(toy.B), batch.label]).mean()

  loss = lambda params: method.stages[0].loss(
    state.replace(params=params), batch, key
  )[0]
  found = jax.jit(jax.grad(loss))(state.params)
  want = jax.jit(jax.grad(by_hand))(state.params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
    found, want,
  )  # fmt: skip


def test_each_draw_is_normalised_with_its_own_statistics():
  task, key = toy.toy_task(model=toy.Normed()), jax.random.key(3)
  method = randconv.create(task, RandConv())
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  _, (stats, _, found) = jax.jit(method.stages[0].loss)(state, batch, key)

  body = jax.device_get(state.params["backbone"]["body"])
  mean, var = np.zeros(toy.D), np.ones(toy.D)
  for draw_key in jax.random.split(key, 4)[1:]:
    x = random_convolution(draw_key, batch.image, mix=True, keep=0.0)
    x = np.asarray(x).reshape(toy.B, -1) @ body["kernel"] + body["bias"]
    mean = 0.9 * mean + 0.1 * x.mean(axis=0)
    var = 0.9 * var + 0.1 * x.var(axis=0)
  np.testing.assert_allclose(stats["norm"]["mean"], mean, atol=1e-5)
  np.testing.assert_allclose(stats["norm"]["var"], var, rtol=1e-4)
  assert float(found["loss_agree"]) > 0
