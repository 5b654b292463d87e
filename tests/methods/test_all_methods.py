"""What holds for every method of the registry; a new one is tested at once.

Each method is trained for two steps per stage on the digits CNN. Steps on the
other backbones are traced only, unless slow tests run.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from conftest import load_config
from golden_helpers import SIZE, made_dataset

from comen_jax import config as config_lib
from comen_jax import sharding
from comen_jax.data.batches import Batch
from comen_jax.data.dataset import Dataset, leave_one_out
from comen_jax.data.sources import Sources
from comen_jax.data.views import make_views
from comen_jax.experiment import Experiment, build
from comen_jax.methods.base import Task
from comen_jax.methods.registry import METHODS, create
from comen_jax.nn import winograd
from comen_jax.nn.registry import BACKBONES, shapes
from comen_jax.nn.registry import build as build_backbone
from comen_jax.train_state import TrainState

NAMES = tuple(METHODS)
LABELLED = tuple(n for n in NAMES if METHODS[n].domain_labels)
# ResNet-34 and 50 are the same code as ResNet-18.
SIZES = {"resnet18": 32, "alexnet": BACKBONES["alexnet"].least_size}


def each(names: tuple[str, ...]) -> list:
  """Parameters; to discover domains takes long, and has tests of its own."""
  slow = [name for name in names if METHODS[name].norm == "sdnorm"]
  return [
    pytest.param(name, marks=[pytest.mark.slow] if name in slow else [])
    for name in names
  ]


def supporting(backbone: str) -> tuple[str, ...]:
  entries = {n: METHODS[n].backbones or (backbone,) for n in NAMES}
  return tuple(n for n in NAMES if backbone in entries[n])


@pytest.fixture(scope="module", autouse=True)
def plain_convolutions():
  """Winograd's functions take twice as long to compile."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(winograd, "suits", lambda *_: False)
    yield


def make_experiment(
  name: str,
  dataset: Dataset,
  devices: int = 1,
  backbone: str = "digits_cnn",
  size: int = SIZE,
) -> Experiment:
  config = load_config("digits" if backbone == "digits_cnn" else "pacs")
  config.method, config.backbone, config.pretrained = name, backbone, ""
  config.augment = "none"
  config.store_size, config.image_size = SIZE, size
  config.batch_size = config.eval_batch_size = 24
  config.epochs, config.stage_shares = 3, (0.34, 0.33, 0.33)
  config.comen.pretrain_steps = 10
  config_lib.check(config)
  return build(config, dataset, sharding.make(jax.devices()[:devices]))


class Unit(NamedTuple):
  """A prepare or a step of a stage, and the states around it, as numpy.

  Attributes:
    stage: number of the stage.
    step: number of the step in the stage; None for a prepare.
    before: the state before.
    after: the state after.
    metrics: what a step logs.
  """

  stage: int
  step: int | None
  before: Any
  after: Any
  metrics: dict[str, float]


def run_unit(experiment: Experiment, stage: int, step: int | None, state: Any):
  """The state after a prepare or step, which starts from numpy arrays."""
  state = jax.device_put(state, experiment.shardings.replicated)
  if step is None:
    return experiment.prepare(state, stage)[0], {}
  batch = list(experiment.train_batches(stage))[step]
  return experiment.train_steps[stage](state, batch, experiment.key)


def host(tree: Any) -> Any:
  # Copies: a step reuses the memory of its state.
  return jax.tree.map(np.array, tree)


class Trained(NamedTuple):
  """Two steps of every stage, after what it prepares."""

  experiment: Experiment
  units: list[Unit]


@functools.cache
def trained(name: str) -> Trained:
  experiment = make_experiment(name, made_dataset())
  state, units = host(experiment.init()), []
  for number, stage in enumerate(experiment.method.stages):
    for step in (*([None] if stage.prepare else []), 0, 1):
      before = state
      state, metrics = host(run_unit(experiment, number, step, before))
      units.append(Unit(number, step, before, state, metrics))
  return Trained(experiment, units)


def poisoned(domains: bool) -> Dataset:
  """Another target; if `domains`, also other domains of the source images."""
  dataset = made_dataset()
  rng = np.random.default_rng(7)
  target = np.flatnonzero(dataset.domains == 3)  # s, the default target.
  images, labels = dataset.images.copy(), dataset.labels.copy()
  images[target] = rng.integers(0, 256, images[target].shape)
  labels[target] = 0
  of_rows = dataset.domains.copy()
  if domains:
    rows = np.flatnonzero(of_rows != 3)
    of_rows[rows] = rng.permutation(of_rows[rows])
  return dataclasses.replace(
    dataset, images=images, labels=labels, domains=of_rows
  )


def on(experiment: Experiment, dataset: Dataset) -> Experiment:
  """The same experiment, with its compiled steps, on other data."""
  split = leave_one_out(dataset, "s")
  batch_size, rows = experiment.sizes.evaluation, experiment.shardings.rows
  labels = experiment.method.domain_labels
  return experiment._replace(
    dataset=dataset,
    split=split,
    sources=Sources(dataset, split, batch_size, rows, labels),
  )


def differences(experiment: Experiment, units: list[Unit]) -> list[str]:
  """Leaves that differ when units are repeated, each from its old state.

  This is what a resumed run does. First steps are left out, to save time.
  """
  found = []
  for unit in (u for u in units if u.step != 0):
    again, _ = run_unit(experiment, unit.stage, unit.step, unit.before)
    one = jax.tree_util.tree_leaves_with_path(unit.after)
    other = jax.tree.leaves(host(again))
    found += [
      f"{unit.stage}/{unit.step}{jax.tree_util.keystr(path)}"
      for (path, a), b in zip(one, other)
      if not np.array_equal(a, b)
    ]
  return found


@pytest.mark.parametrize("name", each(NAMES))
def test_it_learns_and_all_stays_finite(name):
  units = trained(name).units
  first, last = units[0].before, units[-1].after
  for leaf in jax.tree.leaves(last):
    if np.issubdtype(leaf.dtype, np.floating):
      assert np.isfinite(leaf).all()
  assert all(np.isfinite(v) for u in units for v in u.metrics.values())
  assert all("loss" in u.metrics for u in units if u.step is not None)
  moved = jax.tree.map(
    lambda a, b: not np.array_equal(a, b),
    first.params["backbone"],
    last.params["backbone"],
  )
  assert all(jax.tree.leaves(moved["conv1"]))
  assert last.step == sum(u.step is not None for u in units)


@pytest.mark.parametrize("name", each(NAMES))
def test_what_it_may_not_read_does_not_matter_and_it_resumes(name):
  experiment, units = trained(name)
  labels = METHODS[name].domain_labels
  assert experiment.method.domain_labels == labels
  other = on(experiment, poisoned(domains=not labels))
  assert differences(other, units) == []


@pytest.mark.parametrize("name", LABELLED)
def test_a_method_marked_so_does_use_domain_labels(name):
  experiment, units = trained(name)
  assert differences(on(experiment, poisoned(domains=True)), units) != []


@functools.cache
def network(backbone: str, norm: str) -> tuple[Task, dict[str, Any]]:
  """A task on a backbone, and the shapes of the backbone's variables."""
  size = SIZES[backbone]
  model = build_backbone(backbone, num_classes=4, norm=norm)
  outputs, variables = shapes(model, size)
  task = Task(
    model=model,
    views=make_views("half", "none", size),
    norm=norm,
    num_classes=4,
    num_domains=3,
    num_sources=3,
    num_rows=96,
    image_size=size,
    feature_dim=outputs.features.shape[-1],
    epochs=3,
    steps_per_epoch=2,
    stage_shares=(0.34, 0.33, 0.33),
  )
  return task, {"batch_stats": {}, **variables}


def check_traced(name: str, backbone: str) -> None:
  """Traces the losses of all stages; the state keeps its structure."""
  entry = METHODS[name]
  own = BACKBONES[backbone].norms[0]
  task, variables = network(
    backbone, own if entry.norm == "own" else entry.norm
  )
  method = create(name, task, {})
  key = jax.random.key(0)
  params, memory = jax.eval_shape(method.init, key, variables)
  numbers = jax.ShapeDtypeStruct((24,), np.int32)
  shape = (24, SIZES[backbone], SIZES[backbone], 3)
  images = jax.ShapeDtypeStruct(shape, np.float32)
  batch = Batch(images, numbers, numbers, numbers)
  state = TrainState(
    params={"backbone": variables["params"], **params},
    batch_stats=variables["batch_stats"],
    memory=memory,
    opt_state={},
    step=jax.ShapeDtypeStruct((), np.int32),
  )
  for stage in method.stages:
    loss, aux = jax.eval_shape(stage.loss, state, batch, key)
    assert loss.shape == ()
    # Else a checkpoint could not be restored, or a step is compiled twice.
    assert aux[:2] == (state.batch_stats, state.memory)


# Domain labels weigh features and logits, which all backbones have.
RESNET = each(tuple(n for n in supporting("resnet18") if n not in LABELLED))
REST = [(n, "resnet18") for n in supporting("resnet18") if n in LABELLED]
REST += [(n, "alexnet") for n in supporting("alexnet")]


@pytest.mark.parametrize("name", RESNET)
def test_its_losses_can_be_traced_on_resnet(name):
  check_traced(name, "resnet18")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backbone"), REST)
def test_its_losses_can_be_traced_on_every_backbone(name, backbone):
  check_traced(name, backbone)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_eight_devices_compute_what_one_does(name):
  eight = make_experiment(name, made_dataset(), devices=8)
  for unit in trained(name).units:
    after, _ = run_unit(eight, unit.stage, unit.step, unit.before)
    for (path, a), b in zip(
      jax.tree_util.tree_leaves_with_path(unit.after),
      jax.tree.leaves(host(after)),
    ):
      where = f"{unit.stage}/{unit.step}{jax.tree_util.keystr(path)}"
      np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=where)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("name", "backbone"), [(n, b) for b in SIZES for n in supporting(b)]
)
def test_it_trains_on_every_backbone(name, backbone):
  experiment = make_experiment(
    name, made_dataset(), 8, backbone, SIZES[backbone]
  )
  state = experiment.init()
  for number, stage in enumerate(experiment.method.stages):
    if stage.prepare:
      state, _ = experiment.prepare(state, number)
    for batch in list(experiment.train_batches(number))[:2]:
      step = experiment.train_steps[number]
      state, metrics = step(state, batch, experiment.key)
    assert np.isfinite(float(metrics["loss"]))
