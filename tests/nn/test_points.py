"""Points of the backbones: tap sees and changes, enter starts in the middle."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import drawn

from comen_jax.nn.alexnet import AlexNet
from comen_jax.nn.digits_cnn import DigitsCNN
from comen_jax.nn.registry import BACKBONES
from comen_jax.nn.resnet import ResNet

PROBS = jnp.full((2, 3), 1 / 3)
CASES = {
  "digits": (DigitsCNN(5, norm="none"), 16, [8, 4, 2, 1]),
  "digits_bn": (DigitsCNN(5, norm="batch"), 16, [8, 4, 2, 1]),
  "digits_sdnorm": (DigitsCNN(5, norm="sdnorm"), 16, [8, 4, 2, 1]),
  "resnet": (ResNet(5, depth=10), 32, [8, 8, 4, 2, 1]),
}


def seen_by_tap(model, variables, images):
  """Outputs of the network and what a tap sees, by the name of the point."""
  seen = {}

  def tap(name, x):
    seen[name] = x
    return x

  outputs = model.apply(
    variables, images, train=False, domain_probs=PROBS, tap=tap
  )
  return outputs, seen


@pytest.fixture(scope="module", params=CASES)
def case(request):
  model, size, sides = CASES[request.param]
  images = jax.random.normal(jax.random.key(0), (2, size, size, 3))
  variables = drawn(model, images, train=False)
  outputs, seen = jax.jit(lambda: seen_by_tap(model, variables, images))()
  return model, sides, images, variables, outputs, seen


def test_a_tap_sees_every_point_and_changes_nothing(case):
  model, sides, images, variables, outputs, seen = case
  assert set(seen) == set(model.points)
  for name, side in zip(model.points, sides):
    assert seen[name].shape[:3] == (2, side, side)
  np.testing.assert_array_equal(seen["features"], outputs.features)
  plain = jax.jit(lambda: model.apply(variables, images, False, PROBS))()
  jax.tree.map(np.testing.assert_array_equal, plain, outputs)


def test_entering_after_a_point_gives_the_same_end(case):
  model, _, _, variables, outputs, seen = case

  @jax.jit
  def ends():
    return [
      model.apply(variables, seen[name], False, PROBS, enter=name)
      for name in model.points
    ]

  for end in ends():
    np.testing.assert_allclose(end.logits, outputs.logits, atol=1e-5)
    np.testing.assert_allclose(end.features, outputs.features, atol=1e-5)
    assert end.style is None and end.domain_logits is None


def test_layers_before_the_entrance_need_no_parameters(case):
  model, _, _, variables, _, seen = case
  sizes = []
  for name in model.points:
    init = partial(model.init, train=False, domain_probs=PROBS, enter=name)
    needed = jax.eval_shape(init, jax.random.key(1), seen[name])["params"]
    assert needed.keys() <= variables["params"].keys()
    sizes.append(len(needed))
  assert sizes == sorted(sizes, reverse=True)
  assert sizes[-1] == 1 and model.head in needed
  assert sizes[0] < len(variables["params"])


def test_the_network_goes_on_with_what_the_tap_returns():
  model = DigitsCNN(5, norm="none")
  images = jnp.ones((2, 16, 16, 3))
  variables = drawn(model, images, train=False)
  for point in model.points:
    tap = lambda name, x, point=point: 0 * x if name == point else x
    outputs = model.apply(variables, images, False, tap=tap)
    # All biases are 0 at the start, so 0 stays 0.
    assert not outputs.logits.any(), point
    assert outputs.style.any()  # The style is that of the picture.


def test_alexnet_has_a_point_after_each_pooling():
  """Shapes only: its hidden layers have 57 million parameters."""
  model = AlexNet(5, norm="none")
  image = jnp.zeros((2, 224, 224, 3))

  def run(image):
    variables = model.init(jax.random.key(0), image, False)
    outputs, seen = seen_by_tap(model, variables, image)
    ends = [
      model.apply(variables, seen[name], False, enter=name).logits
      for name in model.points
    ]
    return outputs, seen, ends

  _, seen, ends = jax.eval_shape(run, image)
  assert [seen[name].shape for name in model.points] == [
    (2, 27, 27, 64), (2, 13, 13, 192), (2, 6, 6, 256), (2, 4096),
  ]  # fmt: skip
  assert [end.shape for end in ends] == 4 * [(2, 5)]


def test_style_of_a_later_layer_is_taken_before_the_tap():
  model = ResNet(5, depth=10, norm="sdnorm", style_at="layer1")
  image = jnp.ones((2, 32, 32, 3))
  variables = drawn(model, image, train=False)

  @jax.jit
  def style(scale):
    tap = lambda name, x: scale * x if name == "layer1" else x
    return model.apply(variables, image, False, tap=tap).style

  np.testing.assert_array_equal(style(1.0), style(3.0))


def test_a_wrong_entrance_is_refused():
  model = DigitsCNN(5, norm="sdnorm")
  x = jnp.zeros((2, 8, 8, 64))
  with pytest.raises(ValueError, match="'layer9': choose one of"):
    model.init(jax.random.key(0), x, False, enter="layer9")
  with pytest.raises(ValueError, match="SDNorm needs domain_probs"):
    model.init(jax.random.key(0), x, False, enter="layer1")


def test_the_registry_knows_the_points():
  for entry in BACKBONES.values():
    assert entry.points == entry.create(num_classes=2).points
