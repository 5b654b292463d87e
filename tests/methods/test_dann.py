"""DANN on a linear network: the gradient of the domain loss is reversed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from linear_net import DOMAINS, LinearNet, made_batch, made_state

from comen_jax.methods import adversary, dann
from comen_jax.methods.options.labelled import Dann

BATCH = made_batch()
NET = adversary.Discriminator(3, 8)
# 100 steps, in a network that is bounded by its norms.
TASK = toy.toy_task(
  model=LinearNet(), norm="batch", epochs=10, steps_per_epoch=10
)
FREE = 1e9  # Clips nothing.
STATE = made_state(
  discriminator=NET.init(jax.random.key(1), jnp.zeros((1, 4)))["params"]
)


def parts(params, step: int, task=TASK, clip: float = FREE):
  """The loss without that of the classes."""
  loss, (_, _, metrics) = dann.adversarial(
    STATE.replace(params=params, step=jnp.array(step)),
    BATCH,
    jax.random.key(0),
    task=task,
    discriminator=NET,
    options=Dann(weight=0.5, adversary_clip=clip),
  )
  return loss - metrics["loss_cls"]


def domain_loss(params):
  features = (
    LinearNet().apply({"params": params["backbone"]}, BATCH.image, True)
  ).features
  logits = NET.apply({"params": params["discriminator"]}, features)
  return -jax.nn.log_softmax(logits)[jnp.arange(8), DOMAINS].mean()


def test_the_backbone_gets_the_reversed_gradient_the_discriminator_its_own():
  value, gradient = jax.jit(jax.value_and_grad(parts), static_argnums=1)(
    STATE.params, 20
  )
  want, plain = jax.jit(jax.value_and_grad(domain_loss))(STATE.params)
  assert value == pytest.approx(float(0.5 * want), rel=1e-5)
  a = 2 / (1 + np.exp(-2.0)) - 1
  for name, factor in (("backbone", -a), ("discriminator", 1)):
    for one, other in zip(
      jax.tree.leaves(gradient[name]), jax.tree.leaves(plain[name])
    ):
      np.testing.assert_allclose(one, 0.5 * factor * other, atol=1e-6)
  assert any(leaf.any() for leaf in jax.tree.leaves(plain["backbone"]["body"]))


def test_the_reversed_gradient_is_bounded_the_other_is_not():
  """Digits without norms became NaN in the second epoch."""
  gradient = jax.jit(jax.grad(parts), static_argnums=(1, 2, 3))
  plain = gradient(STATE.params, 20)
  clipped = gradient(STATE.params, 20, TASK, 1e-3)
  tenth = gradient(STATE.params, 20, TASK._replace(norm="none"))
  same = gradient(STATE.params, 20, TASK._replace(norm="none", pretrained=True))
  largest = lambda tree: max(
    float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(tree)
  )
  body = lambda tree: tree["backbone"]["body"]
  assert 0 < largest(body(clipped)) < 0.1 * largest(body(plain))
  assert largest(body(tenth)) == pytest.approx(
    0.1 * largest(body(plain)), rel=1e-4
  )
  assert largest(body(same)) == pytest.approx(largest(body(plain)), rel=1e-4)
  for other in (clipped, tenth):
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8),
      other["discriminator"],
      plain["discriminator"],
    )


def test_the_reversal_rises_from_0_to_1():
  values = [float(adversary.ramp(jnp.array(t))) for t in (0.0, 0.1, 1.0)]
  assert values[0] == 0
  assert values[1] == pytest.approx(0.4621, abs=1e-4)
  assert 0.9999 < values[2] < 1
