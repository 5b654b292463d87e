"""The PyTorch peer computes what we compute: equal weights, equal loss."""

import jax
import numpy as np
import pytest

torch = pytest.importorskip(
  "torch", reason="torch is not installed: there is no peer to compare with"
)

from benchmarks import jax_steps, made, torch_steps  # noqa: E402
from comen_jax import sharding  # noqa: E402

TINY = {
  "digits": made.NETWORKS["digits"]._replace(batch=24, eval_batch=24),
  "resnet18": made.NETWORKS["resnet18"]._replace(
    size=32, batch=8, eval_batch=8
  ),
}
# Parameters whose gradient shows what reaches the first and the last layers.
GRADIENTS = {"digits": ("conv1", "norm4"), "resnet18": ("conv1", "bn1")}


def torch_name(path):
  return ".".join(key.key for key in path)


def to_torch(state, module):
  """Copies our parameters, running statistics and memory into the peer."""
  backbone = {"net": state.params["backbone"]}
  trees = [
    backbone,
    {"net": state.batch_stats},
    {"graph": state.params.get("protogr", {})},
  ]
  arrays = {}
  for tree in trees:
    for path, value in jax.tree_util.tree_leaves_with_path(tree):
      arrays[torch_name(path)] = np.array(value)
  if state.memory:
    memory = state.memory.prototypes
    width = memory.values.shape[-1]
    arrays["memory.values"] = np.array(memory.values).reshape(-1, width)
    arrays["memory.seen"] = np.array(memory.seen).reshape(-1)
    arrays["memory.domains"] = np.array(state.memory.domains).astype(int)
    module_memory = getattr(module, "memory", None)
    if module_memory is not None:
      module_memory.domains = torch.from_numpy(arrays["memory.domains"])
  target = module.state_dict()
  new = {name: torch.from_numpy(_convert(name, arrays)) for name in target}
  module.load_state_dict(new)


def _convert(name, arrays):
  """The array of ours for a name of the peer's."""
  for theirs, ours in (
    ("domain_predictor.hidden", "domain_predictor.Dense_0"),
    ("domain_predictor.out", "domain_predictor.Dense_1"),
    ("running_", ""),
  ):
    name = name.replace(theirs, ours)
  if name.endswith("num_batches_tracked"):
    return np.array(0)
  if name in arrays:
    return arrays[name]
  kernel = arrays.get(name.replace("weight", "kernel"))
  if kernel is None:
    return arrays[name.replace("weight", "scale")]
  axes = (3, 2, 0, 1) if kernel.ndim == 4 else (1, 0)
  return kernel.transpose(axes).copy()


@pytest.fixture(scope="module")
def shardings():
  return sharding.make(jax.devices()[:1])


def both(network, row, shardings, monkeypatch):
  """Our experiment and state, a batch, and the peer with equal weights."""
  sizes = TINY[network]
  monkeypatch.setitem(made.NETWORKS, network, sizes)
  method, stage = jax_steps.ROWS[row]
  experiment = jax_steps.make_experiment(sizes, method, shardings)
  state = jax_steps.make_state(experiment)
  batch = next(experiment.train_batches(0))
  module = torch_steps.make_loss(network, row)
  to_torch(state, module)
  whole = torch_steps.Whole(network, module, channels_last=True)
  theirs = whole(
    *(
      torch.from_numpy(np.array(x).astype(kind))
      for x, kind in (
        (batch.image, np.uint8), (batch.label, np.int64), (batch.row, np.int64)
      )
    )
  )  # fmt: skip
  return experiment, stage, state, batch, module, theirs


@pytest.mark.parametrize(
  ("network", "row"),
  [
    ("digits", "deepall"),
    ("digits", "deepall_bn"),
    ("digits", "discover"),
    ("digits", "encode"),
    pytest.param("resnet18", "deepall", marks=pytest.mark.slow),
    pytest.param("resnet18", "encode", marks=pytest.mark.slow),
  ],
)
def test_losses_and_gradients_are_equal(network, row, shardings, monkeypatch):
  experiment, stage, state, batch, module, theirs = both(
    network, row, shardings, monkeypatch
  )
  loss = {s.name: s.loss for s in experiment.method.stages}[stage]
  batch = batch.replace(
    image=experiment.views.train(experiment.key, batch.image)
  )

  def of_params(params):
    value, (_, memory, _) = loss(
      state.replace(params=params), batch, experiment.key
    )
    return value, memory

  (ours, memory), grads = jax.jit(jax.value_and_grad(of_params, has_aux=True))(
    state.params
  )
  theirs.backward()
  np.testing.assert_allclose(float(theirs.detach()), float(ours), rtol=1e-3)
  for layer in GRADIENTS[network]:
    expected = grads["backbone"].get(layer)
    if not expected:
      continue  # No norm.
    for name, parameter in getattr(module.net, layer).named_parameters():
      flat = {f"net.{layer}.{k}": np.array(v) for k, v in expected.items()}
      want = _convert(f"net.{layer}.{name}", flat)
      # A bias before a norm has the gradient 0, but for rounding.
      scale = max(np.abs(want).max(), 1e-3)
      np.testing.assert_allclose(
        parameter.grad.numpy(), want, atol=2e-3 * scale, err_msg=name
      )
  if row == "encode":
    values = module.memory.values.numpy()
    want = np.array(memory.prototypes.values).reshape(values.shape)
    np.testing.assert_allclose(values, want, atol=1e-4)
  if row == "discover":
    want = grads["backbone"]["domain_predictor"]["Dense_1"]["kernel"]
    found = module.net.domain_predictor.out.weight.grad.numpy().T
    np.testing.assert_allclose(found, want, atol=2e-3 * np.abs(want).max())


@pytest.mark.parametrize("row", ["eval_bn", "eval_comen"])
def test_evaluations_are_equal(row, shardings, monkeypatch):
  experiment, _, state, batch, _, theirs = both(
    "digits", row, shardings, monkeypatch
  )
  ours = experiment.eval_step(state, batch)
  ours = jax.device_get(ours)  # clu divides a float by an integer.
  loss, correct, count = (float(x.detach()) for x in theirs)
  np.testing.assert_allclose(loss / count, ours.loss.compute(), rtol=1e-3)
  np.testing.assert_allclose(correct / count, ours.accuracy.compute())
