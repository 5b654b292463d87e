"""A small COMEN experiment on fixed data, the same on every machine."""

import jax
import jax.numpy as jnp
import numpy as np
from conftest import load_config

from comen_jax import sharding
from comen_jax.data.dataset import Dataset
from comen_jax.experiment import build

CLASSES, DOMAINS, SIZE = 4, 3, 16


def made_dataset() -> Dataset:
  """Noise whose mean tells the class and whose contrast tells the domain."""
  rng = np.random.default_rng(0)
  numbers = np.arange(4 * 24)
  labels, domains = numbers % CLASSES, numbers // 24
  images = rng.normal(size=(len(numbers), SIZE, SIZE, 3))
  images *= 20 * (1 + domains[:, None, None, None])
  images += 60 + 40 * labels[:, None, None, None]
  return Dataset(
    name="made",
    images=np.clip(images, 0, 255).astype(np.uint8),
    labels=labels.astype(np.int32),
    domains=domains.astype(np.int32),
    splits=(numbers % 6 == 5).astype(np.uint8),
    class_names=tuple("abcd"),
    domain_names=("p", "q", "r", "s"),
    manifest="0" * 64,
    default_target="s",
  )


def made_experiment(method: str = "comen", augment="none", **comen):
  """The experiment on one device; `comen` has its three stages.

  Args:
    method: name of the method.
    augment: augmentation of the training view.
    **comen: settings of COMEN.
  """
  config = load_config("digits")
  config.method = method
  with config.ignore_type():
    config.augment = augment
  config.comen.prototype_form = "unit"  # The golden numbers are of this form.
  config.comen.update(comen)
  config.store_size = config.image_size = SIZE
  config.batch_size = config.eval_batch_size = 24
  config.epochs, config.stage_shares = 3, (0.34, 0.33, 0.33)
  one = sharding.make(jax.devices()[:1])
  return build(config, made_dataset(), one)


def fixed_state(experiment):
  """The first state, with prototypes and domains as if encode had begun."""
  state = experiment.init()
  if not state.memory:
    return state
  rng = np.random.default_rng(1)
  old = state.memory.prototypes
  seen = np.ones(old.seen.shape, bool)
  seen[2, 1] = False
  values = np.abs(rng.normal(size=old.values.shape)) * seen[..., None]
  domains = np.arange(len(state.memory.domains)) % DOMAINS
  memory = state.memory.replace(
    prototypes=old.replace(
      values=jnp.asarray(values, jnp.float32), seen=jnp.asarray(seen)
    ),
    domains=jnp.asarray(domains, jnp.int32),
  )
  return state.replace(memory=memory)
