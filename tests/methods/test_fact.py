"""FACT against its equations in numpy, and its teacher's closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from comen_jax.data.spectrum import random_amplitude_mix
from comen_jax.methods import fact
from comen_jax.methods.options.label_free import Fact

KEY = jax.random.key(2)


def _at_step(state, step, params):
  return state.replace(
    step=jnp.asarray(step, jnp.int32), params={"backbone": params}
  )


def _networks(params, count):
  """Parameters as if a run had `count` steps."""
  rng = np.random.default_rng(0)
  draw = lambda x: x + jnp.asarray(rng.normal(size=x.shape), x.dtype)
  return [params] + [jax.tree.map(draw, params) for _ in range(count - 1)]


@pytest.mark.parametrize("decay", [0.9995, 0.6])
def test_the_teacher_equals_its_closed_form(decay):
  task = toy.toy_task()
  method = fact.create(task, Fact(decay=decay))
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  networks = _networks(state.params["backbone"], 6)
  loss = jax.jit(method.stages[0].loss)
  for step, params in enumerate(networks):
    _, (_, memory, _) = loss(_at_step(state, step, params), batch, KEY)
    state = state.replace(memory=memory)
  if decay == 0.9995:  # Never reached: the mean of all networks.
    weights = np.full(6, 1 / 6)
  else:  # m is 0, 1/2, then 0.6; a network counts (1 - m) times what follows.
    m = [0, 0.5, 0.6, 0.6, 0.6, 0.6]
    weights = np.array([(1 - m[i]) * np.prod(m[i + 1 :]) for i in range(6)])
  assert weights.sum() == pytest.approx(1)
  for name, got in memory["teacher"].items():
    want = sum(w * np.asarray(n[name]) for w, n in zip(weights, networks))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def _divergence(teacher, network):
  q, p = toy.softmax(teacher / 10), toy.softmax(network / 10)
  total = 0.0
  for i, k in np.ndindex(q.shape):
    total += q[i, k] * np.log(q[i, k] / p[i, k])
  return total / len(q)


@pytest.mark.parametrize("step", [0, 14, 40])
def test_the_loss_is_its_equation(step):
  options = Fact(ramp_share=0.5)  # 5 of 10 epochs of 4 steps.
  task = toy.toy_task()
  method = fact.create(task, options)
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  # Far apart, so that the divergence is more than rounding.
  network = jax.tree.map(lambda x: 5 * x, state.params["backbone"])
  state = _at_step(state, step, network)
  loss, (_, memory, metrics) = jax.jit(method.stages[0].loss)(state, batch, KEY)

  mixed = random_amplitude_mix(
    jax.random.split(KEY, 3)[0], task.views.pixels(batch.image), 1.0
  )
  images = [batch.image, task.views.normalise(mixed)]
  z, z2 = (toy.numpy_toy(state.params, x)[1] for x in images)
  t, t2 = (toy.numpy_toy({"backbone": memory["teacher"]}, x)[1] for x in images)
  if step:
    assert np.abs(t - z).max() > 1
  growth = {0: np.exp(-5), 14: np.exp(-5 * (1 - 3 / 5) ** 2), 40: 1}[step]
  divergence = _divergence(t, z2) + _divergence(t2, z)
  want = 0.5 * toy.numpy_cross_entropy(z, batch.label)
  want += 0.5 * toy.numpy_cross_entropy(z2, batch.label)
  want += 2 * growth * divergence
  np.testing.assert_allclose(loss, want, rtol=1e-4)
  np.testing.assert_allclose(metrics["loss_teacher"], divergence, rtol=1e-3)


def test_no_gradient_flows_through_the_teacher():
  task = toy.toy_task()
  method = fact.create(task, Fact(weight=100.0, ramp_share=0.0))
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  teacher = jax.tree.map(lambda x: -x, state.params["backbone"])
  state = state.replace(memory={"teacher": teacher}, step=jnp.asarray(1))

  def gradient(teacher_params):
    def loss(params):
      at = state.replace(params=params)
      if teacher_params is not None:
        # The teacher after this step's update, as a constant.
        at = at.replace(memory={"teacher": teacher_params})
      return method.stages[0].loss(at, batch, KEY)[0]

    return jax.jit(jax.grad(loss))(state.params)["backbone"]

  found = gradient(None)
  # With decay 1 after the first update the teacher does not see the network.
  half = jax.tree.map(
    lambda t, p: 0.5 * t + 0.5 * p, teacher, state.params["backbone"]
  )
  method = fact.create(task, Fact(weight=100.0, ramp_share=0.0, decay=1.0))
  state = state.replace(step=jnp.asarray(10**8))  # m is 1 in float32.
  want = gradient(half)
  for name, value in found.items():
    np.testing.assert_allclose(value, want[name], rtol=1e-3, atol=1e-5)


def test_the_teacher_normalises_with_the_batch_and_keeps_no_statistics():
  task = toy.toy_task(model=toy.Normed())
  method = fact.create(task, Fact())
  state, batch = toy.toy_state(method, task), toy.toy_batch()
  # Statistics of no batch, and a teacher that is not the network.
  teacher = jax.tree.map(lambda x: 3 * x + 0.2, state.memory["teacher"])
  state = state.replace(
    step=jnp.asarray(3),
    memory={"teacher": teacher},
    batch_stats=jax.tree.map(lambda x: x + 2, state.batch_stats),
  )

  @jax.jit
  def run(state):
    mix_key = jax.random.split(KEY, 3)[0]
    pixels = task.views.pixels(batch.image)
    mixed = task.views.normalise(random_amplitude_mix(mix_key, pixels, 1.0))
    _, (stats, memory, metrics) = method.stages[0].loss(state, batch, KEY)
    apply = lambda params: task.model.apply(
      {"params": params, "batch_stats": state.batch_stats},
      jnp.concatenate([batch.image, mixed]), train=True,
      mutable=["batch_stats"],
    )  # fmt: skip
    of_network = apply(state.params["backbone"])
    return stats, metrics, of_network, apply(memory["teacher"])

  stats, metrics, (outputs, updated), (taught, others) = run(state)
  close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
  jax.tree.map(close, stats, updated["batch_stats"])
  mean, other = (s["norm"]["mean"] for s in (stats, others["batch_stats"]))
  assert np.abs(mean - other).max() > 0.01
  (z, z2), (t, t2) = np.split(outputs.logits, 2), np.split(taught.logits, 2)
  want = _divergence(t, z2) + _divergence(t2, z)
  np.testing.assert_allclose(metrics["loss_teacher"], want, rtol=1e-3)


def test_the_divergence_grows_over_its_epochs_and_then_stays():
  epochs = jnp.arange(8)
  got = [float(fact.growth(e, 5.0)) for e in epochs]
  want = [np.exp(-5 * (1 - min(e, 5) / 5) ** 2) for e in range(8)]
  np.testing.assert_allclose(got, want, rtol=1e-5)
  assert fact.growth(epochs[0], 0.0) == 1
