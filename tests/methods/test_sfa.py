"""SFA: the size of its noise, and the window of features of each class."""

import jax
import jax.numpy as jnp
import numpy as np
import toy

from comen_jax.methods import sfa
from comen_jax.methods.options.label_free import SfaA, SfaS
from comen_jax.nn.backbone import Outputs

KEY = jax.random.key(0)


class Tapped(toy.Toy):
  """The toy, whose features a tap may change."""

  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    plain = super().__call__(images, train)
    features = tap("features", plain.features) if tap else plain.features
    head = self.variables["params"]["head"]
    return Outputs(features, features @ head, None, None)


def run(create, options, **changes):
  task = toy.toy_task(model=Tapped())
  method = create(task, options)
  state = toy.toy_state(method, task).replace(**changes)
  found = jax.jit(method.stages[0].loss)(state, toy.toy_batch(), KEY)
  return state, found


def test_without_noise_both_are_cross_entropy():
  for create, options in (
    (sfa.create_s, SfaS(0.0, 0.0)),
    (sfa.create_a, SfaA(strength=0.0)),
  ):
    state, (loss, _) = run(create, options)
    batch = toy.toy_batch()
    logits = toy.numpy_toy(state.params, batch.image)[1]
    want = toy.numpy_cross_entropy(logits, batch.label)
    np.testing.assert_allclose(loss, want, rtol=1e-5)


def test_noise_of_sfa_s_multiplies_and_adds():
  batch = toy.toy_batch()
  state, (loss, _) = run(sfa.create_s, SfaS(0.5, 0.25))
  features, _ = toy.numpy_toy(state.params, batch.image)
  _, scale_key, shift_key = jax.random.split(KEY, 3)
  scale = 1 + 0.5 * np.asarray(jax.random.normal(scale_key, features.shape))
  shift = 0.25 * np.asarray(jax.random.normal(shift_key, features.shape))
  head = np.asarray(state.params["backbone"]["head"])
  want = toy.numpy_cross_entropy((scale * features + shift) @ head, batch.label)
  np.testing.assert_allclose(loss, want, rtol=1e-5)


def test_the_window_keeps_the_last_features_of_each_class():
  rng = np.random.default_rng(0)
  R = 3
  window = sfa.Window(jnp.zeros((2, R, 4)), jnp.zeros(2, jnp.int32))
  put = jax.jit(sfa.put)
  seen = {0: [], 1: []}
  # The last batch has more images of class 1 than the window has slots.
  for labels in ([0, 1, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1, 0, 1, 1]):
    features = rng.normal(size=(len(labels), 4)).astype(np.float32)
    window = put(window, features, jnp.array(labels))
    for label, feature in zip(labels, features):
      seen[label].append(feature)
    for label, all_seen in seen.items():
      assert window.count[label] == len(all_seen)
      wanted = {tuple(f) for f in all_seen[-R:]}
      filled = min(len(all_seen), R)
      slots = np.asarray(window.features[label, :filled])
      assert {tuple(f) for f in slots} == wanted


def test_noise_of_sfa_a_has_the_covariance_of_the_class():
  rng = np.random.default_rng(1)
  count = np.array([5, 2, 1, 9], np.int32)  # The last has gone round.
  features = rng.normal(2, 1, (4, 6, 3)).astype(np.float32)
  window = sfa.Window(jnp.asarray(features), jnp.asarray(count))
  labels = np.repeat(np.arange(4), 20_000)
  noise = jax.jit(sfa.draw)(KEY, window, labels)
  for label in range(4):
    own = features[label, : min(count[label], 6)]
    want = np.cov(own.T, bias=True) if len(own) > 1 else np.zeros((3, 3))
    found = np.asarray(noise)[labels == label]
    np.testing.assert_allclose(np.cov(found.T), want, atol=0.03)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=0.03)


def test_noise_is_that_of_each_images_own_class():
  features = jnp.zeros((2, 4, 3)).at[1].set(jnp.eye(4, 3))
  window = sfa.Window(features, jnp.array([4, 4]))
  noise = sfa.draw(KEY, window, jnp.array([0, 1, 0]))
  assert not noise[0].any() and noise[1].any() and not noise[2].any()


def test_sfa_a_remembers_the_features_without_noise():
  state, (_, (_, window, _)) = run(sfa.create_a, SfaA(window=4))
  batch = toy.toy_batch()
  features, _ = toy.numpy_toy(state.params, batch.image)
  own = features[np.asarray(batch.label) == 2]
  np.testing.assert_allclose(window.features[2, :2], own, rtol=1e-4)
  assert window.count.tolist() == [4, 2, 2]


def test_noise_of_sfa_a_carries_no_gradient():
  task, batch = toy.toy_task(model=Tapped()), toy.toy_batch()
  method = sfa.create_a(task, SfaA(strength=2.0, window=4))
  state = toy.toy_state(method, task)
  loss = lambda params: method.stages[0].loss(
    state.replace(params=params), batch, KEY
  )
  found, (_, window, _) = jax.jit(jax.grad(loss, has_aux=True))(state.params)
  noise = 2 * sfa.draw(jax.random.split(KEY)[1], window, batch.label)
  assert jnp.abs(noise).max() > 0.1

  def by_hand(params):
    kernel, head = params["backbone"]["kernel"], params["backbone"]["head"]
    x = jax.nn.relu(batch.image.reshape(toy.B, -1) @ kernel) + noise
    return -jax.nn.log_softmax(x @ head)[jnp.arange(toy.B), batch.label].mean()

  want = jax.jit(jax.grad(by_hand))(state.params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
    found, want,
  )  # fmt: skip
