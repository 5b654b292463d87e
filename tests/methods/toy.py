"""A toy task: a backbone of two matrices, so that numpy can repeat a loss."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from comen_jax.data.batches import Batch
from comen_jax.data.views import make_views
from comen_jax.methods.base import Method, Task
from comen_jax.nn.backbone import Outputs
from comen_jax.nn.batch_norm import BatchNorm
from comen_jax.train_state import TrainState

B, K, D, SIZE = 8, 3, 5, 12


class Toy(nn.Module):
  """features = relu(image @ kernel), logits = features @ head."""

  head = "head"
  norm = "none"

  @nn.compact
  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    flat = images.reshape(len(images), -1)
    normal = nn.initializers.normal(0.1)
    features = nn.relu(flat @ self.param("kernel", normal, (flat.shape[1], D)))
    logits = features @ self.param("head", normal, (D, K))
    return Outputs(features, logits, None, None)


class Normed(nn.Module):
  """One layer with a BatchNorm, and a head."""

  @nn.compact
  def __call__(self, images, train, domain_probs=None, *, tap=None, enter=""):
    x = nn.Dense(D, name="body")(images.reshape(len(images), -1))
    x = BatchNorm(name="norm")(x, use_running_average=not train)
    features = nn.relu(x)
    return Outputs(features, nn.Dense(K)(features), None, None)


def toy_task(**changes) -> Task:
  task = Task(
    model=Toy(),
    views=make_views("half", "none", SIZE),
    norm="none",
    num_classes=K,
    num_domains=3,
    num_sources=3,
    num_rows=100,
    image_size=SIZE,
    feature_dim=D,
    epochs=10,
    steps_per_epoch=4,
    stage_shares=(0.1, 0.3, 0.6),
  )
  return task._replace(**changes)


def toy_state(method: Method, task: Task) -> TrainState:
  """The first state, from a fixed key."""

  def init() -> TrainState:
    image = jnp.zeros((1, task.image_size, task.image_size, 3))
    variables = task.model.init(jax.random.key(0), image, train=False)
    params, stats = variables["params"], variables.get("batch_stats", {})
    extra, memory = method.init(
      jax.random.key(1), {"params": params, "batch_stats": stats}
    )
    params = {"backbone": params, **extra}
    return TrainState.create(params, stats, memory, optax.sgd(0.1))

  return jax.jit(init)()


def toy_batch(seed: int = 0) -> Batch:
  """Normalised noise; each class has two images or more."""
  rng = np.random.default_rng(seed)
  return Batch(
    image=jnp.asarray(rng.uniform(-1, 1, (B, SIZE, SIZE, 3)), jnp.float32),
    label=jnp.asarray([0, 1, 2, 0, 1, 2, 0, 0], jnp.int32),
    row=jnp.arange(B, dtype=jnp.int32),
    mask=jnp.ones(B),
  )


def numpy_toy(params, images) -> tuple[np.ndarray, np.ndarray]:
  """Features and logits of the toy, in float64."""
  kernel, head = (
    np.asarray(params["backbone"][name], np.float64)
    for name in ("kernel", "head")
  )
  flat = np.asarray(images, np.float64).reshape(len(images), -1)
  features = np.maximum(flat @ kernel, 0)
  return features, features @ head


def softmax(logits) -> np.ndarray:
  logits = np.asarray(logits, np.float64)
  p = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return p / p.sum(axis=-1, keepdims=True)


def numpy_cross_entropy(logits, labels) -> float:
  """The mean over the images, one by one."""
  p = softmax(logits)
  return float(np.mean([-np.log(p[i, k]) for i, k in enumerate(labels)]))
