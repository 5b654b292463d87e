"""Compares ResNet with PyTorch's, and its SDNorm with its BatchNorm form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.core import FrozenDict
from networks import SHARED, drawn, mixed_probs, photographs, relative

from comen_jax.nn import pretrained
from comen_jax.nn.registry import build
from comen_jax.nn.resnet import STYLE_AT, ResNet
from comen_jax.nn.style import style_statistics

WEIGHTS = SHARED / "weights" / "resnet18_imagenet.safetensors"
needs_weights = pytest.mark.skipif(
  not WEIGHTS.exists(), reason=f"{WEIGHTS} is not there: no ImageNet weights"
)


@functools.partial(jax.jit, static_argnums=0)
def evaluate(model, variables, images, domain_probs=None):
  return model.apply(variables, images, False, domain_probs)


@functools.partial(jax.jit, static_argnums=0)
def train(model, variables, images, domain_probs=None):
  return model.apply(
    variables, images, True, domain_probs, mutable=["batch_stats"]
  )


@functools.cache
def born(model, size=32):
  """Returns variables of zeros; a file of weights replaces them."""
  init = functools.partial(model.init, train=False)
  image = jnp.zeros((1, size, size, 3))
  shapes = jax.eval_shape(init, jax.random.key(0), image)
  return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)


@needs_weights
def test_imagenet_resnet18_computes_what_pytorch_does_with_any_domains():
  twins = pytest.importorskip("torchvision_twins")
  images = photographs(2, 224)
  features, logits = twins.run(twins.load(twins.ResNet(), WEIGHTS)[0], images)
  for norm, probs in (
    ("batch", None),
    ("sdnorm", np.eye(3, dtype=np.float32)[[0, 2]]),
    ("sdnorm", mixed_probs(2)),
  ):
    model = ResNet(1000, norm=norm)
    variables, report = pretrained.load_with_report(
      WEIGHTS, born(model), load_head=True
    )
    assert not report.unused
    assert all(n.startswith("domain_predictor") for n in report.new)
    got = evaluate(model, variables, images, probs)
    assert relative(got.features, features) < 1e-3
    assert relative(got.logits, logits) < 1e-3
    np.testing.assert_allclose(got.features, features, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("depth", [34, 50])
def test_random_resnet_computes_what_pytorch_does(depth, tmp_path):
  twins = pytest.importorskip("torchvision_twins")
  twin = twins.randomise(twins.ResNet(depth, 7))
  images = photographs(2, 65)  # Odd: every stride meets a remainder.
  features, logits = twins.run(twin, images)
  model = ResNet(7, depth=depth, norm="sdnorm")
  path = twins.save(twin, tmp_path / "twin.safetensors")
  variables = pretrained.load(path, born(model), load_head=True)
  got = evaluate(model, variables, images, mixed_probs(2))
  assert relative(got.features, features) < 1e-4
  assert relative(got.logits, logits) < 1e-4


@functools.cache
def _pair():
  """Makes a BatchNorm and an SDNorm ResNet of the same weights, and images."""
  batch = ResNet(5, depth=10)  # Shallow: compilation is the cost.
  # At 0.15 of eight images a domain still has statistics of its own.
  sdnorm = batch.clone(norm="sdnorm", sdnorm=FrozenDict(min_mass=1.0))
  images = photographs(8, 32)
  variables = drawn(sdnorm, images[:1], train=False)
  rng = np.random.default_rng(2)
  # As after loading, all domains of a norm have the same random values.
  draw = {
    "scale": lambda n: rng.uniform(0.5, 1.5, n),
    "bias": lambda n: rng.normal(size=n) / 5,
    "mean": lambda n: rng.normal(size=n) / 5,
    "var": lambda n: rng.uniform(0.5, 2, n),
  }

  def redraw(path, leaf):
    name = path[-1].key
    if name not in draw or leaf.ndim == 1:
      return leaf
    return np.tile(draw[name](leaf.shape[1]), (3, 1)).astype(np.float32)

  ours = jax.tree_util.tree_map_with_path(redraw, variables)

  def first(path, leaf):
    is_norm = path[-1].key in draw and leaf.ndim == 2
    return leaf[0] if is_norm else leaf

  plain = jax.tree_util.tree_map_with_path(first, ours)
  for collection in plain.values():
    collection.pop("domain_predictor")
  return (batch, plain), (sdnorm, ours), images


@pytest.mark.parametrize("row", [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.25, 0.15)])
def test_equal_probabilities_train_sdnorm_as_batch_norm(row):
  """Holds if every domain has enough mass for its own statistics."""
  (batch, plain), (sdnorm, ours), images = _pair()
  probs = np.tile(np.array(row, np.float32), (8, 1))
  want, expected = train(batch, plain, images)
  got, state = train(sdnorm, ours, images, probs)
  assert relative(got.features, want.features) < 1e-4
  assert relative(got.logits, want.logits) < 1e-4
  for block, norm in (("layer1_0", "bn2"), ("layer4_0", "downsample_1")):
    for name, value in expected["batch_stats"][block][norm].items():
      for branch in state["batch_stats"][block][norm][name]:
        np.testing.assert_allclose(branch, value, rtol=1e-3, atol=1e-3)


def test_every_norm_after_the_stem_is_sdnorm_with_shortcuts():
  stats = born(ResNet(5, norm="sdnorm"))["batch_stats"]
  leaves = jax.tree_util.tree_leaves_with_path(stats)
  norms = {p[:-1] for p, _ in leaves if p[0].key != "domain_predictor"}
  assert len(norms) == 20  # One of the stem, 16 in blocks, 3 on shortcuts.
  assert all(
    leaf.ndim == 2 for p, leaf in leaves if p[0].key != "domain_predictor"
  )
  plain = born(ResNet(5, norm="sdnorm", sdnorm_stem=False))["batch_stats"]
  assert plain["bn1"]["mean"].shape == (64,)
  assert plain["layer1_0"]["bn1"]["mean"].shape == (3, 64)


def test_style_is_of_the_stems_raw_convolution():
  _, (model, variables), images = _pair()
  kernel = variables["params"]["conv1"]["kernel"]
  raw = jax.lax.conv_general_dilated(
    images, kernel, (2, 2), ((3, 3), (3, 3)),
    dimension_numbers=("NHWC", "HWIO", "NHWC"),
  )  # fmt: skip

  @jax.jit
  def first_layers(variables, images):
    outputs = model.apply(variables, images, False)
    return outputs.style, outputs.domain_logits

  style, domain_logits = first_layers(variables, images)
  np.testing.assert_allclose(style, style_statistics(raw), atol=1e-4)
  assert domain_logits.shape == (8, 3)


@pytest.mark.parametrize("style_at", STYLE_AT)
def test_norms_before_the_style_are_plain(style_at):
  model = ResNet(5, norm="sdnorm", style_at=style_at)
  images = jnp.zeros((2, 32, 32, 3))
  init = functools.partial(model.init_with_output, train=False)
  outputs, variables = jax.eval_shape(init, jax.random.key(0), images)
  place = STYLE_AT.index(style_at)
  width = 64 * 2 ** max(0, place - 1)
  assert outputs.style.shape == (2, 2 * width)
  for stage in range(1, 5):
    shape = variables["batch_stats"][f"layer{stage}_1"]["bn1"]["mean"].shape
    assert len(shape) == (2 if stage > place else 1)
  # To freeze the style, freeze the stem's conv or all layers up to the stage.
  assert model.style_layers[0] == "conv1"
  assert set(model.style_layers) <= variables["params"].keys()
  assert len(model.style_layers) == (1 if style_at == "stem" else 2 + 2 * place)


def test_rematerialisation_changes_nothing():
  _, (model, variables), images = _pair()
  probs = mixed_probs(8)

  @functools.partial(jax.jit, static_argnums=0)
  def step(model, params):
    def loss(params):
      ours = {**variables, "params": params}
      outputs, state = train(model, ours, images, probs)
      return jnp.square(outputs.logits).mean(), state

    return jax.grad(loss, has_aux=True)(params)

  grads, state = step(model, variables["params"])
  again, same = step(model.clone(remat=True), variables["params"])
  assert jax.tree.structure((grads, state)) == jax.tree.structure((again, same))
  scale = max(np.abs(x).max() for x in jax.tree.leaves(grads))
  for a, b in zip(jax.tree.leaves(grads), jax.tree.leaves(again)):
    np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4 * scale)
  for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(same)):
    np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("norm", ["batch", "sdnorm"])
def test_bfloat16_computes_in_it_and_returns_float32(norm):
  pairs = dict(zip(("batch", "sdnorm"), _pair()))
  model, variables = pairs[norm]
  images = _pair()[2]
  probs = mixed_probs(8) if norm == "sdnorm" else None
  half = model.clone(dtype=jnp.bfloat16)
  outputs, state = train(half, variables, images, probs)
  full, _ = train(model, variables, images, probs)
  for leaf in jax.tree.leaves((outputs, state)):
    assert leaf.dtype == jnp.float32
  assert 0 < relative(outputs.logits, full.logits) < 0.2


def test_unknown_values_are_refused_with_the_known_ones():
  for attributes, text in (
    ({"norm": "none"}, r"'none'.*batch.*sdnorm"),
    ({"depth": 20}, r"20.*18.*34.*50"),
    ({"style_at": "layer5"}, r"layer5.*stem"),
  ):
    model = build("resnet18", num_classes=5).clone(**attributes)
    with pytest.raises(ValueError, match=text):
      born(model)
