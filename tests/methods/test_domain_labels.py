"""True domains in the memory, and means by domain in mixed batches."""

import jax.numpy as jnp
import numpy as np
import pytest
from golden_helpers import made_dataset

from comen_jax import sharding
from comen_jax.data.batches import Batch
from comen_jax.data.dataset import leave_one_out
from comen_jax.data.sources import Sources
from comen_jax.methods import domain_labels
from comen_jax.train_state import TrainState


def sources(target: str, declared: bool = True) -> Sources:
  dataset = made_dataset()
  split = leave_one_out(dataset, target)
  return Sources(dataset, split, 24, sharding.make().rows, declared)


def state(count: int) -> TrainState:
  memory = domain_labels.Memory(jnp.full(count, -1, jnp.int32))
  return TrainState({}, {}, memory, {}, jnp.zeros((), jnp.int32))


def test_the_memory_has_the_domain_of_every_source_image_and_of_no_other():
  # Four domains of 24 rows; without the second one, r is source 1.
  known, _ = domain_labels.remember(state(96), sources("q"), None, None)
  found = np.asarray(known.memory.domains)
  np.testing.assert_array_equal(found, np.repeat([0, -1, 1, 2], 24))
  batch = Batch(None, None, jnp.array([0, 50, 30, 95]), None)
  w = domain_labels.weights(known.memory, batch, 3)
  assert w.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_domains_stay_unread_unless_the_method_says_so():
  with pytest.raises(ValueError, match="does not declare"):
    domain_labels.remember(state(96), sources("q", False), None, None)


def test_means_of_three_domains_of_which_one_is_empty():
  values = jnp.array([1.0, 5.0, 3.0, 7.0])
  w = jnp.array([[1.0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]])
  found, present = domain_labels.means(values, w)
  assert found.tolist() == [2.0, 0.0, 5.0]
  assert present.tolist() == [True, False, True]
