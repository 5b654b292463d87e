"""A linear network on tiny images, so that a method can be worked by hand."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.data.batches import Batch
from comen_jax.methods.domain_labels import Memory
from comen_jax.nn.backbone import Outputs
from comen_jax.train_state import TrainState

CLASSES = 3
# Three source domains; no image of the second is in the batch.
DOMAINS = np.array([0, 2, 0, 2, 2, 0, 0, 2])


class LinearNet(nn.Module):
  """Features are the pixels times a matrix, logits are a linear head."""

  num_classes: int = CLASSES
  head = "head"

  @nn.compact
  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    x = images.reshape(len(images), -1)
    features = nn.Dense(4, name="body")(x)
    logits = nn.Dense(self.num_classes, name="head")(features)
    return Outputs(features, logits, features, None)


def made_batch(seed: int = 0) -> Batch:
  """Eight images of 2x2 pixels; row i of the data is image i."""
  rng = np.random.default_rng(seed)
  return Batch(
    image=jnp.asarray(rng.normal(size=(8, 2, 2, 3)), jnp.float32),
    label=jnp.asarray(rng.integers(0, CLASSES, 8), jnp.int32),
    row=jnp.arange(8),
    mask=jnp.ones(8),
  )


def made_state(own=(), **more) -> TrainState:
  """The state of a method with domain labels; `more` are its parameters."""
  params = LinearNet().init(jax.random.key(0), made_batch().image, True)
  return TrainState(
    params={"backbone": params["params"], **more},
    batch_stats={},
    memory=Memory(jnp.asarray(DOMAINS), own),
    opt_state={},
    step=jnp.zeros((), jnp.int32),
  )


def domain_losses(backbone, batch: Batch) -> dict[int, jax.Array]:
  """Mean cross-entropy by domain, in plain steps."""
  logits = LinearNet().apply({"params": backbone}, batch.image, True).logits
  each = -jax.nn.log_softmax(logits)[jnp.arange(8), batch.label]
  return {
    domain: each[np.flatnonzero(domain == DOMAINS)].mean() for domain in (0, 2)
  }
