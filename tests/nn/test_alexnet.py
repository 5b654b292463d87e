"""Compares AlexNet with PyTorch's; tests its norms and its smallest image."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import SHARED, drawn, mixed_probs, photographs, relative

from comen_jax.errors import UserError
from comen_jax.nn import pretrained
from comen_jax.nn.alexnet import AlexNet
from comen_jax.nn.registry import build

WEIGHTS = SHARED / "weights" / "alexnet_imagenet_features.safetensors"


@functools.cache
def network(norm):
  model = AlexNet(5, norm=norm)
  return model, drawn(model, jnp.zeros((1, 64, 64, 3)), train=False)


@functools.partial(jax.jit, static_argnums=(0, 3))
def run(model, variables, images, train=False, probs=None, seed=0):
  return model.apply(
    variables,
    images,
    train,
    probs,
    mutable=["batch_stats"],
    rngs={"dropout": jax.random.key(seed)},
  )


@pytest.mark.parametrize("size", [224, 97, 64])
def test_random_alexnet_computes_what_pytorch_does(size, tmp_path):
  """At 224 the pooling before fc6 does nothing; below, windows overlap."""
  twins = pytest.importorskip("torchvision_twins")
  twin = twins.randomise(twins.AlexNet(5))
  images = photographs(2, size)
  features, logits = twins.run(twin, images)
  model, variables = network("none")
  path = twins.save(twin, tmp_path / "twin.safetensors")
  variables, report = pretrained.load_with_report(path, variables, True)
  assert not report.new and not report.unused
  got, _ = run(model, variables, images)
  assert relative(got.features, features) < 1e-4
  assert relative(got.logits, logits) < 1e-4


@pytest.mark.skipif(
  not WEIGHTS.exists(), reason=f"{WEIGHTS} is not there: no ImageNet weights"
)
def test_imagenet_convolutions_load_and_the_rest_is_reported_as_new():
  twins = pytest.importorskip("torchvision_twins")
  twin, missing = twins.load(twins.AlexNet(5), WEIGHTS)
  assert all(name.startswith("classifier") for name in missing)
  model, variables = network("none")
  loaded, report = pretrained.load_with_report(WEIGHTS, variables)
  assert len(report.loaded) == 10 and not report.unused
  assert (
    "newly initialised: classifier_1, classifier_4, classifier_6"
    in report.summary()
  )
  assert "classifier_1, classifier_4: they start at random" in report.warning()
  # Both networks get our fc layers, so that the convolutions are compared.
  ours = loaded["params"]
  tensors = twin.state_dict()
  for number in (1, 4, 6):
    dense = ours[f"classifier_{number}"]
    kernel, bias = (np.array(dense[n]) for n in ("kernel", "bias"))
    tensors[f"classifier.{number}.weight"] = twins.torch.from_numpy(kernel.T)
    tensors[f"classifier.{number}.bias"] = twins.torch.from_numpy(bias)
  twin.load_state_dict(tensors)
  images = photographs(2, 224)
  features, _ = twins.run(twin, images)
  got, _ = run(model, loaded, images)
  assert relative(got.features, features) < 1e-3


@pytest.mark.parametrize("norm", ["batch", "sdnorm"])
def test_norms_stand_before_the_relus_of_fc6_and_fc7(norm):
  model, variables = network(norm)
  norms = {"norm6", "norm7"}
  assert norms <= variables["params"].keys()
  shape = (4096,) if norm == "batch" else (3, 4096)
  assert variables["batch_stats"]["norm6"]["mean"].shape == shape
  images = photographs(8, 64)
  probs = mixed_probs(8) if norm == "sdnorm" else None
  outputs, state = run(model, variables, images, True, probs)
  assert outputs.style.shape == (8, 128)
  # Half of the normalised values are negative: ReLU makes them 0.
  assert 0.4 < (outputs.features == 0).mean() < 0.6
  moved = state["batch_stats"]["norm7"]["var"]
  assert np.abs(moved - 1).max() > 0


def test_dropout_is_of_training_only():
  model, variables = network("none")
  images = photographs(2, 64)
  one, _ = run(model, variables, images, True, seed=0)
  other, _ = run(model, variables, images, True, seed=1)
  assert relative(one.features, other.features) > 0.1
  one, _ = run(model, variables, images, False, seed=0)
  other, _ = run(model, variables, images, False, seed=1)
  np.testing.assert_array_equal(one.features, other.features)


def test_bfloat16_computes_in_it_and_returns_float32():
  model, variables = network("sdnorm")
  images = photographs(2, 64)
  full, _ = run(model, variables, images)
  half, state = run(model.clone(dtype=jnp.bfloat16), variables, images)
  for leaf in jax.tree.leaves((half, state)):
    assert leaf.dtype == jnp.float32
  assert 0 < relative(half.logits, full.logits) < 0.1


def test_image_that_is_too_small_is_one_line():
  model = build("alexnet", num_classes=5, norm="none")
  with pytest.raises(UserError, match=r"image_size=62.*63 or more"):
    model.init(jax.random.key(0), jnp.zeros((1, 62, 62, 3)), train=False)
