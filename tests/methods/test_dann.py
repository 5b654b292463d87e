"""DANN on a linear network: the gradient of the domain loss is reversed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_net import DOMAINS, LinearNet, made_batch, made_state

from comen_jax.methods import dann

BATCH = made_batch()
NET = dann.Discriminator(3, 8)
STATE = made_state(
  discriminator=NET.init(jax.random.key(1), jnp.zeros((1, 4)))["params"]
)


def parts(params, step: int, weight: float = 0.5):
  """The loss without that of the classes."""
  loss, (_, _, metrics) = dann.adversarial(
    STATE.replace(params=params, step=jnp.array(step)),
    BATCH,
    jax.random.key(0),
    model=LinearNet(),
    discriminator=NET,
    weight=weight,
    steps=100,
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


def test_the_reversal_rises_from_0_to_1():
  values = [float(dann.strength(jnp.array(s), 100)) for s in (0, 10, 100)]
  assert values[0] == 0
  assert values[1] == pytest.approx(0.4621, abs=1e-4)
  assert 0.9999 < values[2] < 1
