"""A loss that is not finite: the first bad step and its term are named."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.errors import UserError
from comen_jax.run import finite
from comen_jax.run.plan import Unit
from comen_jax.train_state import TrainState

NAN, INF = float("nan"), float("inf")


def _watch():
  stage = SimpleNamespace(name="encode")
  return finite.Watch(Unit(5, stage, 2, 1, run_epoch=4), first=100)


def _history(count, **bad):
  """Metrics of `count` steps; `bad` gives the values of the last ones."""
  good = {"loss": 1.0, "loss_cls": 0.5, "loss_protogr": 0.5, "agreement": 1.0}
  return [*[dict(good)] * (count - 1), {**good, **bad}]


@pytest.mark.parametrize(
  ("bad", "named"),
  [
    ({"loss": NAN, "loss_protogr": NAN}, "loss_protogr is nan at step 107"),
    ({"loss": INF, "loss_cls": INF}, "loss_cls is inf at step 107"),
    ({"loss": NAN}, "loss is nan at step 107"),
    ({"loss_cls": -INF}, "loss_cls is -inf at step 107"),
    (
      {"loss": NAN, "loss_cls": INF, "loss_protogr": NAN},
      "loss_cls is inf, loss_protogr is nan at step 107",
    ),
  ],
)
def test_the_first_bad_step_and_its_terms_are_named(bad, named):
  history = _history(7, **bad) + _history(3, loss=NAN, loss_cls=NAN)
  with pytest.raises(UserError) as caught:
    _watch().end(history)
  text = str(caught.value)
  assert text.startswith(f"{named} (encode, epoch 5): ")
  assert "checkpoint is kept" in text and "--debug_nans" in text
  assert "learning_rate" not in text  # Nothing is guessed.
  assert "\n" not in text


def test_finite_losses_pass_and_other_metrics_may_be_what_they_are():
  _watch().end(_history(7, agreement=NAN, loss=1e30))


def test_a_bad_loss_is_seen_within_a_few_steps():
  """Without waiting for the newest step: it is looked at two steps late."""
  bad = {"loss": jnp.float32(NAN), "loss_cls": jnp.float32(NAN)}
  watch, history = _watch(), _history(14)
  for count in range(1, 15):
    watch.step(history[:count])
  with pytest.raises(UserError, match="loss_cls is nan at step 115"):
    for _ in range(10):
      history.append(bad)
      watch.step(history)
  assert len(history) == 20


def _state(**values):
  given = {"params": {"a": {"kernel": jnp.ones(3)}}, "batch_stats": {}}
  given |= {"memory": (), "opt_state": ({"trace": jnp.zeros(2)},)} | values
  return TrainState(**given, step=jnp.asarray(9, jnp.int32))


@pytest.mark.parametrize(
  ("values", "named"),
  [
    (
      {"params": {"a": {"kernel": jnp.array([1.0, NAN, NAN])}}},
      "params/a/kernel has 2 values such as nan",
    ),
    (
      {"batch_stats": {"norm": {"var": jnp.array([[INF, 1.0]])}}},
      "batch_stats/norm/var has 1 values such as inf",
    ),
    (
      {"opt_state": ({"trace": jnp.array(-INF, jnp.bfloat16)},)},
      "opt_state/0/trace has 1 values such as -inf",
    ),
  ],
)
def test_a_state_that_is_not_finite_is_never_saved(values, named):
  with pytest.raises(UserError) as caught:
    finite.check_state(_state(**values))
  assert f"{named} after step 9: the last good" in str(caught.value)


def test_a_finite_state_passes_whatever_a_method_remembers():
  memory = {"nearest": jnp.full(2, INF), "domains": np.arange(3)}
  finite.check_state(_state(memory=memory))
