"""MixStyle by hand on 2x2 maps, its invariants and its partners."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import load_config
from linear_net import DOMAINS, made_batch, made_state

from comen_jax import config as config_lib
from comen_jax.errors import UserError
from comen_jax.methods import mixstyle
from comen_jax.methods.options.label_free import MixStyle

# Two images, 2x2 positions, one channel. Means 2 and 10; the sums of squared
# deviations are 12 and 48, so the unbiased variances are 4 and 16.
SMALL, LARGE = 6**0.5, 24**0.5
MAPS = jnp.array(
  [[[2.0, 2.0], [2 - SMALL, 2 + SMALL]], [[10, 10], [10 - LARGE, 10 + LARGE]]]
)[..., None]
SWAP = jnp.array([1, 0])


def random_maps(seed=0, shape=(4, 3, 2, 5)):
  rng = np.random.default_rng(seed)
  return jnp.asarray(rng.normal(2, 3, shape), jnp.float32)


def test_by_hand():
  """A quarter of its own style: mean 8 and deviation 3.5 for the first."""
  found = mixstyle.mix_styles(MAPS, jnp.array([0.25, 1.0]), SWAP)
  want = (MAPS[0] - 2) / 2 * (0.25 * 2 + 0.75 * 4) + 0.25 * 2 + 0.75 * 10
  np.testing.assert_allclose(found[0], want, rtol=1e-5)
  np.testing.assert_allclose(found[1], MAPS[1], rtol=1e-5)


def test_lambda_1_is_the_identity_and_lambda_0_the_partners_style():
  x = random_maps()
  partner = jnp.array([2, 3, 1, 0])
  same = mixstyle.mix_styles(x, jnp.ones(4), partner)
  np.testing.assert_allclose(same, x, atol=1e-5)
  other = mixstyle.mix_styles(x, jnp.zeros(4), partner)
  for got, want in zip(mixstyle.style(other), mixstyle.style(x)):
    np.testing.assert_allclose(got, want[partner], rtol=1e-4)


def test_against_numpy():
  x, partner = random_maps(), np.array([1, 3, 0, 2])
  part = np.array([0.3, 0.9, 0.0, 1.0], np.float32)
  found = jax.jit(mixstyle.mix_styles)(x, part, partner)
  x = np.asarray(x, np.float64)
  for i, c in np.ndindex(4, 5):
    own, other = x[i, ..., c], x[partner[i], ..., c]
    deviation = [np.sqrt(m.var(ddof=1) + 1e-6) for m in (own, other)]
    wanted = part[i] * deviation[0] + (1 - part[i]) * deviation[1]
    mean = part[i] * own.mean() + (1 - part[i]) * other.mean()
    want = (own - own.mean()) / deviation[0] * wanted + mean
    np.testing.assert_allclose(found[i, ..., c], want, rtol=1e-4, atol=1e-5)


def test_no_gradient_flows_through_the_statistics():
  """So the gradient is that of a fixed affine map of each channel."""
  x, part = random_maps(), jnp.array([0.5, 0.2, 0.7, 0.0])
  partner = jnp.array([1, 2, 3, 0])
  weights = random_maps(1)
  loss = lambda x: (weights * mixstyle.mix_styles(x, part, partner)).sum()
  _, deviation = mixstyle.style(x)
  p = part[:, None, None, None]
  slope = (p * deviation + (1 - p) * deviation[partner]) / deviation
  np.testing.assert_allclose(jax.grad(loss)(x), weights * slope, rtol=1e-4)


def test_a_map_of_one_position_stays_finite():
  x = random_maps(shape=(2, 1, 1, 3))
  mix = lambda x: mixstyle.mix_styles(x, jnp.array([0.5, 0.5]), SWAP)
  np.testing.assert_allclose(mix(x), (x + x[SWAP]) / 2, rtol=1e-5)
  assert np.isfinite(jax.grad(lambda x: mix(x).sum())(x)).all()


def tap_of(key, probability=1.0, layers=()):
  return mixstyle.make_tap(
    key,
    4,
    ("stem", "layer1", "layer2", "layer3", "features"),
    MixStyle(layers=layers, probability=probability),
    lambda key: jax.random.permutation(key, 4),
  )


def test_points_are_every_layer_but_the_last_unless_given():
  x = random_maps()
  changed = lambda tap, name: bool((tap(name, x) != x).any())
  names = ("stem", "layer1", "layer2", "layer3", "features")
  tap = tap_of(jax.random.key(1))
  assert [changed(tap, n) for n in names] == [False, True, True, False, False]
  tap = tap_of(jax.random.key(1), layers=("stem",))
  assert [changed(tap, n) for n in names] == [True, False, False, False, False]
  # Each point draws anew.
  tap = tap_of(jax.random.key(1))
  assert (tap("layer1", x) != tap("layer2", x)).any()


def test_one_coin_decides_for_the_whole_batch():
  x = random_maps()
  mixed = jax.jit(
    jax.vmap(lambda key: tap_of(key, probability=0.5)("layer1", x))
  )(jax.random.split(jax.random.key(3), 200))
  same = np.asarray(mixed == x[None]).all(axis=(2, 3, 4))
  # Beta(.1, .1) is near 1 for many images, but hardly for all four of them.
  kept = same.all(axis=1)
  assert 0.35 < kept.mean() < 0.75
  never = tap_of(jax.random.key(1), probability=0.0)
  np.testing.assert_array_equal(never("layer1", x), x)


def test_partners_of_other_domains():
  state, batch = made_state(), made_batch()
  draw = jax.jit(lambda key: mixstyle.other_domains(key, state, batch))
  drawn = np.array([draw(k) for k in jax.random.split(jax.random.key(0), 60)])
  for partner in drawn:
    assert (DOMAINS[partner] != DOMAINS).all()
  for i in range(8):  # Every image of another domain comes up.
    assert set(drawn[:, i]) == set(np.flatnonzero(DOMAINS[i] != DOMAINS))
  one = state.replace(memory=state.memory.replace(domains=jnp.zeros(8, int)))
  alone = mixstyle.other_domains(jax.random.key(0), one, batch)
  np.testing.assert_array_equal(alone, np.arange(8))


def test_an_unknown_layer_is_one_line():
  config = load_config("digits")
  config.method, config.mixstyle.layers = "mixstyle", ("layer2", "stem")
  with pytest.raises(
    UserError, match=r"mixstyle\.layers=.*digits_cnn has no 'stem'; choose"
  ):
    config_lib.check(config)
