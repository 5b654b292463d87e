"""The method that docs/methods.md writes works as the page says."""

import types

import jax
import numpy as np
import pytest
from conftest import ROOT
from every_method import make_experiment
from golden_helpers import made_dataset
from linear_net import LinearNet, made_batch, made_state

from comen_jax.methods import registry
from comen_jax.methods.registry import Entry

PAGE = (ROOT / "docs" / "methods.md").read_text()
CODE = PAGE.partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def hardest(monkeypatch) -> types.ModuleType:
  """The code of the page as a module, registered as the page says."""
  module = types.ModuleType("hardest")
  exec(CODE, module.__dict__)
  line = '"hardest": Entry(hardest.create, hardest.Options)'
  assert line in PAGE
  entry = eval(f"{{{line}}}", {"hardest": module, "Entry": Entry})
  monkeypatch.setitem(registry.METHODS, "hardest", entry["hardest"])
  return module


def test_the_example_is_short():
  assert 20 < len(CODE.splitlines()) <= 60
  assert max(map(len, CODE.splitlines())) <= 80


def test_it_trains_and_remembers(hardest):
  experiment = make_experiment("hardest", made_dataset())
  state, losses = experiment.init(), []
  for batch in list(experiment.train_batches(0))[:2]:
    state, metrics = experiment.train_steps[0](state, batch, experiment.key)
    losses.append(float(metrics["loss"]))
    assert metrics["loss"] > metrics["loss_all"]
  want = 0.9 * 0.1 * losses[0] + 0.1 * losses[1]
  assert state.memory["mean"] == pytest.approx(want, rel=1e-5)
  assert not experiment.method.domain_labels


def test_its_loss_is_the_mean_of_the_largest(hardest):
  batch = made_batch()
  state = made_state().replace(memory={"mean": np.float32(0)})
  loss, (_, memory, _) = hardest.hardest(
    state, batch, jax.random.key(0), model=LinearNet(), share=0.25
  )
  logits = LinearNet().apply({"params": state.params["backbone"]}, batch.image,
                             True).logits  # fmt: skip
  each = -np.asarray(jax.nn.log_softmax(logits))[np.arange(8), batch.label]
  assert loss == pytest.approx(np.sort(each)[-2:].mean(), rel=1e-5)
  assert memory["mean"] == pytest.approx(0.1 * float(loss), rel=1e-5)


def test_its_options_have_defaults_and_can_be_given(hardest):
  assert registry.options("hardest", {}).share == 0.5
  assert registry.options("hardest", {"hardest": {"share": 0.25}}).share == 0.25
