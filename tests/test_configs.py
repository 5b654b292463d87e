"""Every config builds and steps: full size as shapes, tiny size really."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from conftest import ROOT, load_config

from comen_jax import config as config_lib
from comen_jax import sharding
from comen_jax.data.batches import Batch
from comen_jax.data.dataset import Dataset
from comen_jax.errors import UserError
from comen_jax.experiment import build
from comen_jax.nn.registry import BACKBONES

pytestmark = pytest.mark.usefixtures("plain_convolutions")
NAMES = sorted(p.stem for p in (ROOT / "configs").glob("*.py"))
VARIANTS = [*NAMES, "pacs:quick"]
PHOTOS = ("office_home", "pacs", "vlcs")


def made_dataset(size, count=48, blank=False):
  """Pictures of four domains and seven classes, every fourth for validation."""
  shape = (4 * count, size, size, 3)
  if blank:
    images = np.broadcast_to(
      np.uint8(0), shape
    )  # No memory, whatever the size.
  else:
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
  numbers = np.arange(4 * count)
  return Dataset(
    name="made",
    images=images,
    labels=(numbers % 7).astype(np.int32),
    domains=(numbers // count).astype(np.int32),
    splits=(numbers % 4 == 3).astype(np.uint8),
    class_names=tuple("abcdefg"),
    domain_names=("p", "q", "r", "s"),
    manifest="0" * 64,
    default_target="s",
  )


def experiment_of(config, dataset):
  config.target = ""
  return build(config, dataset, sharding.make(jax.devices()[:1]))


def keys(config, prefix=""):
  for name, value in config.items():
    if hasattr(value, "items"):
      yield from keys(value, f"{prefix}{name}.")
    yield prefix + name


@pytest.mark.parametrize("name", VARIANTS)
def test_all_configs_have_the_same_keys_and_are_locked(name):
  config = load_config(name)
  assert set(keys(config)) == set(keys(load_config("digits")))
  assert config.is_locked and config.comen.is_locked


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("method", ["comen", "deepall", "deepall_bn"])
def test_full_size_builds_and_steps_in_each_stage(name, method):
  """Shapes only: state in = state out."""
  config = load_config(name)
  config.method, config.pretrained = method, ""
  config_lib.check(config)
  if (config.backbone, method) == ("resnet18", "deepall_bn"):
    assert config_lib.norm(config) == "batch"
    config.method = "deepall"
    assert config_lib.norm(config) == "batch"
    return  # It is DeepAll, whose step another case has.
  dataset = made_dataset(config.store_size, count=300, blank=True)
  experiment = experiment_of(config, dataset)
  assert sum(s.epochs for s in experiment.method.stages) == config.epochs
  check_steps(experiment, config, experiment.train_steps)


@pytest.mark.parametrize("backbone", [b for b in BACKBONES if b != "resnet18"])
def test_every_backbone_steps_at_the_size_of_pacs(backbone):
  config = load_config("pacs")
  config.backbone, config.pretrained, config.dtype = backbone, "", "bfloat16"
  config.remat = backbone == "resnet50"
  dataset = made_dataset(config.store_size, count=300, blank=True)
  experiment = experiment_of(config, dataset)
  # The loss of the last stage is the largest; ResNet-18 has all stages above.
  check_steps(experiment, config, experiment.train_steps[-1:])


def check_steps(experiment, config, steps):
  state = jax.eval_shape(experiment.init)
  B, S = config.batch_size, config.store_size
  rows = lambda dtype: jax.ShapeDtypeStruct((B,), dtype)
  image = jax.ShapeDtypeStruct((B, S, S, 3), jnp.uint8)
  batch = Batch(image, rows(jnp.int32), rows(jnp.int32), rows(jnp.float32))
  spec = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
  for step in steps:
    after, metrics = jax.eval_shape(step, state, batch, experiment.key)
    assert spec(after) == spec(state)
    assert metrics["loss"].dtype == jnp.float32


@pytest.fixture(scope="module")
def alexnet_kernels():
  """Two kernels that hold nearly all of AlexNet's 57 million parameters.

  With them in a file XLA leaves out their random start, which takes longer than
  all else in these tests.
  """
  values = np.random.default_rng(1).normal(0, 0.02, 1009).astype(np.float16)
  return {
    "classifier.1.weight": np.resize(values, (4096, 9216)),
    "classifier.4.weight": np.resize(values, (4096, 4096)),
  }


@pytest.mark.parametrize(
  ("backbone", "last"),
  [
    ("resnet18", "encode"),
    ("alexnet", "discover"),
    pytest.param("resnet18", "discover", marks=pytest.mark.slow),
    pytest.param("alexnet", "encode", marks=pytest.mark.slow),
  ],
)
def test_tiny_pictures_train(backbone, last, request, tmp_path):
  """The run is prepared up to one stage, which trains a batch of eight.

  It takes seconds to compile a step, so half of the pairs are slow tests. The
  shapes of all steps are tested above, and digits_cnn has whole runs.
  """
  config = load_config("pacs:quick")
  config.backbone, config.pretrained = backbone, ""
  if backbone == "alexnet":
    config.pretrained = str(tmp_path / "weights.safetensors")
    kernels = request.getfixturevalue("alexnet_kernels")
    safetensors.numpy.save_file(kernels, config.pretrained)
  # AlexNet's least is 63. XLA is slow where a feature map is smaller than the
  # kernel: in ResNet's last stage that is so for images below 65.
  size = {"resnet18": 96, "alexnet": 64}[backbone]
  config.image_size, config.store_size = size, size + 4
  config.batch_size, config.eval_batch_size = 8, 16
  config.comen.pretrain_steps, config.comen.portion = 10, 0.5
  experiment = experiment_of(config, made_dataset(config.store_size, count=16))
  state = experiment.init()
  names = [stage.name for stage in experiment.method.stages]
  assert names == ["discover", "encode"]
  number = names.index(last)
  for each in range(number + 1):
    state, _ = experiment.prepare(state, each)
  batch = next(experiment.train_batches(number))
  before = np.asarray(jax.tree.leaves(state.params["backbone"])[0])
  step = experiment.train_steps[number]
  state, metrics = step(state, batch, experiment.key)
  assert np.isfinite(metrics["loss"])
  after = np.asarray(jax.tree.leaves(state.params["backbone"])[0])
  assert (before != after).any()
  assert int(state.step) == 1


def test_state_is_born_with_the_weights_of_the_file_on_every_device(
  alexnet_kernels, tmp_path
):
  config = load_config("vlcs")
  config.method = "deepall"  # ProtoGR adds 34 million random parameters.
  config.image_size = config.store_size = 64
  config.batch_size = 8
  kernel = np.random.default_rng(0).random((64, 3, 11, 11), np.float32)
  path = tmp_path / "weights.safetensors"
  safetensors.numpy.save_file(
    {"features.0.weight": kernel, **alexnet_kernels}, path
  )
  config.pretrained = str(path)
  dataset = made_dataset(64, count=4)
  two = sharding.make(jax.devices()[:2])
  experiment = build(config, dataset, two)
  assert experiment.weights.loaded == (*alexnet_kernels, "features.0.weight")
  assert "classifier_1, classifier_4" in experiment.weights.warning()
  state = experiment.init()
  born = state.params["backbone"]["features_0"]
  assert len(born["kernel"].sharding.device_set) == 2
  np.testing.assert_array_equal(born["kernel"], kernel.transpose(2, 3, 1, 0))
  for name, given in alexnet_kernels.items():
    layer = state.params["backbone"][name[:12].replace(".", "_")]
    np.testing.assert_array_equal(layer["kernel"], given.T)
  assert not born["bias"].any()
  assert state.params["backbone"]["classifier_6"]["kernel"].std() > 0


@pytest.mark.parametrize("name", PHOTOS)
def test_photo_configs_ask_for_weights(name):
  """Never a silent random start."""
  config = load_config(name)
  assert config.pretrained
  config.pretrained = "nowhere/weights.safetensors"
  config.data_dir = "nowhere"  # Weights are looked for before data are read.
  config_lib.check(config)
  with pytest.raises(UserError, match=r"nowhere/weights\.safetensors"):
    build(config)


@pytest.mark.parametrize(
  "key, value, text",
  [
    ("norm", "none", "batch, sdnorm"),
    ("style_at", "layer5", "stem, layer1"),
    ("backbone", "digits_cnn", "digits_cnn is trained from scratch"),
  ],
)
def test_values_a_backbone_does_not_have_are_one_line(key, value, text):
  config = load_config("pacs")
  config.pretrained = "weights.safetensors"
  config[key] = value
  with pytest.raises(UserError, match=text) as caught:
    config_lib.check(config)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("name", "norm"), [("digits", "none"), ("vlcs", "none"), ("pacs", "batch")]
)
def test_deepall_has_the_norm_of_its_backbone(name, norm):
  config = load_config(name)
  config.method = "deepall"
  assert config_lib.norm(config) == norm


def test_options_of_other_backbones_are_refused():
  config = load_config("digits")
  config.style_at = "layer1"
  with pytest.raises(UserError, match="digits_cnn has stem only"):
    config_lib.check(config)


def test_unknown_variant_is_refused():
  with pytest.raises(ValueError, match=r"'slow'.*quick"):
    load_config("pacs:slow")
