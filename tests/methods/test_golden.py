"""One step of every stage on fixed data: losses and gradient norms.

A refactoring that changes a number fails here at once. When the method itself
is meant to change, print `found` and replace the numbers.
"""

import jax
import numpy as np
import optax
import pytest
from golden_helpers import fixed_state, made_experiment

GOLDEN = {
  "warmup": {
    "loss": 1.1363938,
    "gradient/conv1": 1.2605149,
    "gradient/conv2": 4.2274036,
    "gradient/conv3": 3.4469769,
    "gradient/conv4": 3.3021951,
    "gradient/domain_predictor": 0.0,
    "gradient/head": 1.9851511,
    "gradient/norm1": 0.5738459,
    "gradient/norm2": 0.4233696,
    "gradient/norm3": 0.442027,
    "gradient/norm4": 0.4866126,
    "gradient/protogr": 0.0,
  },
  "discover": {
    "loss": 3.4861846,
    "domain_agreement": 0.25,
    "effective_domains": 2.9494607,
    "loss_cls": 1.1500497,
    "loss_d": 1.0491207,
    "gradient/conv1": 1.2035632,
    "gradient/conv2": 4.0867901,
    "gradient/conv3": 3.3994086,
    "gradient/conv4": 3.205313,
    "gradient/domain_predictor": 0.9469836,
    "gradient/head": 1.923421,
    "gradient/norm1": 0.1918951,
    "gradient/norm2": 0.1604982,
    "gradient/norm3": 0.1566495,
    "gradient/norm4": 0.1791886,
    "gradient/protogr": 0.0,
  },
  "encode": {
    "loss": 1.691856,
    "domain_agreement": 0.25,
    "loss_cls": 1.1500497,
    "loss_protoccl": 2.2036841,
    "loss_protogr": 3.2143786,
    "gradient/conv1": 1.2041832,
    "gradient/conv2": 4.0921717,
    "gradient/conv3": 3.40503,
    "gradient/conv4": 3.2257845,
    "gradient/domain_predictor": 0.0,
    "gradient/head": 1.923421,
    "gradient/norm1": 0.1915963,
    "gradient/norm2": 0.1606583,
    "gradient/norm3": 0.1570715,
    "gradient/norm4": 0.1791219,
    "gradient/protogr": 0.8290921,
  },
  "train": {
    "loss": 1.1719639,
    "gradient/conv1": 0.5052683,
    "gradient/conv2": 2.2535777,
    "gradient/conv3": 2.8847227,
    "gradient/conv4": 3.4246278,
    "gradient/head": 2.2896998,
  },
}


def one_step(experiment, number: int) -> dict[str, float]:
  """Losses, and norms of the gradient by the name of the layer."""
  stage = experiment.method.stages[number]
  state = fixed_state(experiment)
  batch = next(experiment.train_batches(0))
  view = experiment.views.train(experiment.key, batch.image)
  batch = batch.replace(image=view)
  of_params = lambda params: stage.loss(
    state.replace(params=params), batch, experiment.key
  )
  (loss, aux), gradient = jax.jit(jax.value_and_grad(of_params, has_aux=True))(
    state.params
  )
  layers = {**gradient["backbone"], **{
    name: tree for name, tree in gradient.items() if name != "backbone"
  }}  # fmt: skip
  norms = {
    f"gradient/{name}": optax.tree.norm(tree) for name, tree in layers.items()
  }
  found = {"loss": loss, **aux[2], **norms}
  return {name: float(value) for name, value in found.items()}


@pytest.fixture(scope="module")
def experiments():
  return {m: made_experiment(m) for m in ("comen", "deepall")}


@pytest.mark.parametrize(
  ("method", "number", "stage"),
  [
    ("comen", 0, "warmup"),
    ("comen", 1, "discover"),
    ("comen", 2, "encode"),
    ("deepall", 0, "train"),
  ],
)
def test_golden_step(method, number, stage, experiments):
  experiment = experiments[method]
  assert experiment.method.stages[number].name == stage
  found = one_step(experiment, number)
  golden = GOLDEN[stage]
  assert found.keys() == golden.keys()
  for name, value in golden.items():
    # Gradients that a frozen part must not get are exactly 0.
    np.testing.assert_allclose(
      found[name], value, rtol=2e-5, atol=1e-7 if value else 0, err_msg=name
    )
