"""Every method on every backbone that it supports.

Steps on other backbones than the digits CNN are traced only, unless slow tests
run.
"""

import functools
from typing import Any

import jax
import numpy as np
import pytest
from every_method import LABELLED, SIZES, each, make_experiment, supporting
from golden_helpers import made_dataset

from comen_jax.data.batches import Batch
from comen_jax.data.views import make_views
from comen_jax.methods.base import Task
from comen_jax.methods.registry import METHODS, create
from comen_jax.nn.registry import BACKBONES, shapes
from comen_jax.nn.registry import build as build_backbone
from comen_jax.train_state import TrainState

pytestmark = pytest.mark.usefixtures("plain_convolutions")


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
@pytest.mark.parametrize(
  ("name", "backbone"), [(n, b) for b in SIZES for n in supporting(b)]
)
def test_it_trains_on_every_backbone(name, backbone):
  # On one device: eight copies of AlexNet take minutes.
  experiment = make_experiment(name, made_dataset(), 1, backbone)
  state = experiment.init()
  for number, stage in enumerate(experiment.method.stages):
    if stage.prepare:
      state, _ = experiment.prepare(state, number)
    for batch in list(experiment.train_batches(number))[:2]:
      step = experiment.train_steps[number]
      state, metrics = step(state, batch, experiment.key)
    assert np.isfinite(float(metrics["loss"]))
