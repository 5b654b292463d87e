"""Tests which files of weights load, what is reported, what is refused."""

import functools
import logging
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from comen_jax.errors import UserError
from comen_jax.nn import pretrained, weights_file
from comen_jax.nn.backbone import STYLE_COPY
from comen_jax.nn.resnet import ResNet

HUB = "hf://timm/resnet18.tv_in1k/model.safetensors"


@functools.cache
def variables_of(norm, num_classes=5):
  """Draws variables that differ from the file's; compiling init is slow."""
  init = functools.partial(ResNet(num_classes, norm=norm).init, train=False)
  shapes = jax.eval_shape(init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  rng = np.random.default_rng(1)
  return jax.tree.map(lambda x: rng.random(x.shape, np.float32), shapes)


@functools.cache
def arrays():
  """Draws arrays with torchvision's names and shapes for ResNet-18."""
  shapes = {"fc.weight": (1000, 512), "fc.bias": (1000,)}

  def conv(name, norm, *shape):
    shapes[f"{name}.weight"] = shape
    for leaf in ("weight", "bias", "running_mean", "running_var"):
      shapes[f"{norm}.{leaf}"] = shape[:1]

  conv("conv1", "bn1", 64, 3, 7, 7)
  inputs = 64
  for stage in range(1, 5):
    width = 32 * 2**stage
    for i in range(2):
      block = f"layer{stage}.{i}"
      conv(f"{block}.conv1", f"{block}.bn1", width, inputs, 3, 3)
      conv(f"{block}.conv2", f"{block}.bn2", width, width, 3, 3)
      if inputs != width:
        names = f"{block}.downsample.0", f"{block}.downsample.1"
        conv(*names, width, inputs, 1, 1)
      inputs = width
  rng = np.random.default_rng(0)
  made = {n: rng.random(s, np.float32) for n, s in shapes.items()}
  return made | {"bn1.num_batches_tracked": np.array(7)}


@pytest.fixture
def write(tmp_path):
  """Returns a function that writes `arrays()` with changes.

  A change to None leaves the array out.
  """

  def write(name="weights.safetensors", **changes):
    changed = {n: a for n, a in (arrays() | changes).items() if a is not None}
    path = tmp_path / name
    if path.suffix == ".npz":
      np.savez(path, **changed)
    else:
      safetensors.numpy.save_file(changed, path)
    return str(path)

  return write


def test_kernels_are_transposed_and_norms_copied_to_all_domains(write):
  born = variables_of("sdnorm")
  loaded, report = pretrained.load_with_report(write(), born)
  assert jax.tree.map(jnp.shape, loaded) == jax.tree.map(jnp.shape, born)
  block = loaded["params"]["layer2_0"]
  want = arrays()
  np.testing.assert_array_equal(
    block["downsample_0"]["kernel"][0, 0],
    want["layer2.0.downsample.0.weight"][:, :, 0, 0].T,
  )
  stats = loaded["batch_stats"]["layer2_0"]["downsample_1"]
  for m in range(3):
    for got, name in (
      (block["downsample_1"]["scale"], "weight"),
      (block["downsample_1"]["bias"], "bias"),
      (stats["mean"], "running_mean"),
      (stats["var"], "running_var"),
    ):
      np.testing.assert_array_equal(
        got[m], want[f"layer2.0.downsample.1.{name}"]
      )
  assert len(report.loaded) == len(want) - 3
  assert report.unused == ("fc.bias", "fc.weight")
  assert "fc/kernel" in report.new
  # The classifier and F_d keep their initial values.
  for name in ("fc", "domain_predictor"):
    jax.tree.map(
      np.testing.assert_array_equal,
      loaded["params"][name],
      born["params"][name],
    )
  summary = report.summary()
  assert "100 arrays" in summary and "\n" not in summary
  assert "newly initialised: domain_predictor, fc; unused: fc" in summary
  assert report.sha256[:12] in summary
  assert report.warning() == ""


def test_shared_affine_and_plain_norms_load_too(write):
  model = ResNet(5, norm="sdnorm", sdnorm={"per_domain_affine": False})
  init = functools.partial(model.init, train=False)
  shapes = jax.eval_shape(init, jax.random.key(0), jnp.zeros((1, 32, 32, 3)))
  values, _ = pretrained.read(write(), shapes)
  assert values["params"]["bn1"]["scale"].shape == (64,)
  assert values["batch_stats"]["bn1"]["mean"].shape == (3, 64)
  loaded = pretrained.load(write(), variables_of("batch"))
  np.testing.assert_array_equal(
    loaded["batch_stats"]["bn1"]["var"], arrays()["bn1.running_var"]
  )


def test_half_precision_and_npz_load_as_float32(write):
  half = {
    name: array.astype(np.float16)
    for name, array in arrays().items()
    if array.ndim > 1
  }
  for name in ("half.safetensors", "half.npz"):
    loaded = pretrained.load(write(name, **half), variables_of("batch"))
    assert all(x.dtype == np.float32 for x in jax.tree.leaves(loaded))
    np.testing.assert_array_equal(
      loaded["params"]["conv1"]["kernel"],
      half["conv1.weight"].astype(np.float32).transpose(2, 3, 1, 0),
    )


def test_head_loads_when_asked_for(write):
  path = write()
  loaded = pretrained.load(path, variables_of("batch", 1000), load_head=True)
  np.testing.assert_array_equal(
    loaded["params"]["fc"]["kernel"], arrays()["fc.weight"].T
  )
  with pytest.raises(UserError, match=r"fc.*\(1000,.*\(5,.*load_head"):
    pretrained.load(path, variables_of("batch"), load_head=True)


def test_the_copy_of_the_style_layer_is_not_said_to_be_missing(write):
  born = variables_of("sdnorm")
  copy = {"kernel": np.zeros((7, 7, 3, 64), np.float32)}
  stats = {**born["batch_stats"], STYLE_COPY: copy}
  loaded, report = pretrained.load_with_report(
    write(), {**born, "batch_stats": stats}
  )
  assert report.warning() == "" and STYLE_COPY not in report.summary()
  assert loaded["batch_stats"][STYLE_COPY].keys() == {"kernel"}


def test_missing_layers_are_reported_by_name(write):
  path = write(**{"layer3.1.conv2.weight": None, "extra.weight": np.ones(3)})
  _, report = pretrained.load_with_report(path, variables_of("batch"))
  assert "layer3_1/conv2/kernel" in report.new
  assert "extra.weight" in report.unused
  assert "layer3_1" in report.warning()


@pytest.mark.parametrize(
  "changes, text",
  [
    (
      {"layer1.0.conv1.weight": np.ones((64, 64, 1, 1), np.float32)},
      r"layer1.0.conv1.weight.*\(64, 64, 1, 1\).*\(64, 64, 3, 3\)",
    ),
    ({"bn1.bias": np.ones(65, np.float32)}, r"bn1.bias.*\(65,\).*\(64,\)"),
    ({"bn1.bias": np.ones(64, np.int32)}, r"bn1.bias is int32"),
    ({"bn1.bias": np.full(64, np.nan)}, r"bn1.bias has values that are not"),
    ({n: None for n in arrays() if n[0] != "f"}, "none of this backbone's"),
  ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_one_line(write, changes, text):
  path = write(**changes)
  with pytest.raises(UserError, match=text) as caught:
    pretrained.load(path, variables_of("batch"))
  assert "\n" not in str(caught.value)
  assert path in str(caught.value)


@pytest.mark.parametrize(
  "name, content, text",
  [
    ("absent.safetensors", None, "does not exist"),
    ("broken.safetensors", b"no weights", "is broken or not a safetensors"),
    ("broken.npz", b"PK no weights", "broken"),
    ("pickle.npz", "pickle", "plain arrays"),
    ("weights.h5", b"", r"\.safetensors or \.npz"),
    ("resnet18.pth", b"", r"convert \S*resnet18.pth \S*resnet18.safetensors"),
  ],
)
def test_file_that_cannot_be_read_is_one_line(tmp_path, name, content, text):
  path = tmp_path / name
  if content == "pickle":
    np.savez(path, a=np.array([object()]))
  elif content is not None:
    path.write_bytes(content)
  with pytest.raises(UserError, match=text) as caught:
    pretrained.load(str(path), variables_of("batch"))
  assert "\n" not in str(caught.value)
  assert str(path) in str(caught.value)


def _hub(monkeypatch, download):
  module = types.SimpleNamespace(
    hf_hub_download=download, try_to_load_from_cache=lambda *names: None
  )
  monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_hub_file_is_fetched_by_repository_and_name(write, monkeypatch):
  path = write()
  asked = []
  _hub(monkeypatch, lambda *names: asked.append(names) or path)
  assert str(weights_file.resolve(HUB)) == path
  assert asked == [("timm/resnet18.tv_in1k", "model.safetensors")]


def test_a_hub_file_of_the_cache_needs_no_network(tmp_path, monkeypatch):
  constants = pytest.importorskip("huggingface_hub.constants")
  monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
  repository = tmp_path / "models--timm--resnet18.tv_in1k"
  (repository / "refs").mkdir(parents=True)
  (repository / "refs" / "main").write_text("abc")
  path = repository / "snapshots" / "abc" / "model.safetensors"
  path.parent.mkdir(parents=True)
  path.write_bytes(b"")
  ask = lambda *names: pytest.fail("asked the network")
  monkeypatch.setattr("huggingface_hub.hf_hub_download", ask)
  assert weights_file.resolve(HUB) == path


def test_a_fetch_is_one_line_and_its_tries_are_none(monkeypatch, capsys):
  logger = logging.getLogger("huggingface_hub.utils._http")
  handler = logging.StreamHandler(sys.stdout)

  def offline(*names):
    logger.warning("try 1 of 5")
    raise OSError("no route")

  _hub(monkeypatch, offline)
  logging.getLogger().addHandler(handler)
  try:
    with pytest.raises(UserError):
      weights_file.resolve(HUB)
    logger.warning("later")
  finally:
    logging.getLogger().removeHandler(handler)
  said = capsys.readouterr()
  assert said.err == f"fetching {HUB} from Hugging Face\n"
  assert "try" not in said.out and "later" in said.out


def test_without_network_or_hub_the_error_gives_the_address(monkeypatch):
  address = "https://huggingface.co/timm/resnet18.tv_in1k/resolve/main/model.safetensors"

  def offline(*names):
    raise OSError("no route\nto host")

  _hub(monkeypatch, offline)
  with pytest.raises(UserError, match=r"no route to host") as caught:
    weights_file.resolve(HUB)
  assert address in str(caught.value) and "\n" not in str(caught.value)

  monkeypatch.setitem(sys.modules, "huggingface_hub", None)
  with pytest.raises(UserError, match=r"pip install huggingface_hub") as caught:
    weights_file.resolve(HUB)
  assert address in str(caught.value)

  with pytest.raises(UserError, match="hf://owner/repository/file"):
    weights_file.resolve("hf://resnet18")


def test_a_name_that_the_hub_refuses_is_one_line():
  pytest.importorskip("huggingface_hub")
  with pytest.raises(UserError, match="cannot be fetched") as caught:
    weights_file.resolve("hf://a/b--c../../d.safetensors")
  assert "\n" not in str(caught.value)


def _convert(*arguments):
  return subprocess.run(
    [sys.executable, "-m", "comen_jax.nn.pretrained", "convert", *arguments],
    capture_output=True,
    text=True,
  )


def test_pth_is_converted_once_and_loads(tmp_path):
  torch = pytest.importorskip("torch", reason="torch is not installed")
  tensors = {
    f"module.{name}": torch.from_numpy(np.array(array))
    for name, array in arrays().items()
  }
  source, target = tmp_path / "in.pth", tmp_path / "new" / "out.safetensors"
  torch.save({"state_dict": tensors, "epoch": 90}, source)
  done = _convert(str(source), str(target))
  assert done.returncode == 0, done.stderr
  assert done.stderr == ""
  _, report = pretrained.load_with_report(str(target), variables_of("batch"))
  assert len(report.loaded) == 100


def test_conversion_that_fails_is_one_line(tmp_path, monkeypatch):
  torch = pytest.importorskip("torch", reason="torch is not installed")
  code = tmp_path / "code.pth"
  torch.save({"x": subprocess.Popen}, code)  # A pickle that could run code.
  tensor = tmp_path / "tensor.pth"
  torch.save(torch.ones(3), tensor)
  out = str(tmp_path / "out.safetensors")
  for source, target, text in (
    (tmp_path / "absent.pth", out, "absent.pth does not exist"),
    (code, out, "not a file of tensors"),
    (tensor, out, "holds Tensor"),
    (tensor, str(tmp_path / "out.npz"), "ends in .safetensors"),
  ):
    with pytest.raises(UserError, match=text) as caught:
      weights_file.convert(str(source), target)
    assert "\n" not in str(caught.value)
  monkeypatch.setitem(sys.modules, "torch", None)
  with pytest.raises(UserError, match="pip install torch"):
    weights_file.convert(str(tensor), out)
  done = _convert(str(tmp_path / "absent.pth"), out)
  assert done.returncode == 2
  assert done.stderr.count("\n") == 1 and done.stderr.startswith("error: ")
