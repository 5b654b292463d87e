"""AlexNet as torchvision's (one column: Krizhevsky 2014).

Parameters have torchvision's names with "_" for ".": `features_0` is conv1,
`classifier_1` and `classifier_4` are fc6 and fc7.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.errors import UserError
from comen_jax.nn.backbone import Backbone, Outputs

_LEAST = 63  # Below, nothing is left for the last pooling.
# torchvision's number, features, kernel, stride, padding, pooled after.
_CONVS = (
  (0, 64, 11, 4, 2, True),
  (3, 192, 5, 1, 2, True),
  (6, 384, 3, 1, 1, False),
  (8, 256, 3, 1, 1, False),
  (10, 256, 3, 1, 1, True),
)


class AlexNet(Backbone):
  """Five convolutions, two hidden layers with dropout, a linear head.

  Published without norm. `norm` stands between fc6, fc7 and their ReLU.
  """

  style_layers = ("features_0",)

  @nn.compact
  def __call__(
    self,
    images: jax.Array,
    train: bool,
    domain_probs: jax.Array | None = None,
  ) -> Outputs:
    """Features (fc7), logits, style and domain logits of a batch.

    Args:
      images: [B, H, W, 3], normalised, of 63x63 or more.
      train: drop out; normalise with, and update, the batch's statistics.
      domain_probs: [B, M], in place of F_d's. Only SDNorm looks at them.
    """
    self.check(images)
    if min(images.shape[1:3]) < _LEAST:
      raise UserError(
        f"image_size={min(images.shape[1:3])} is too small for AlexNet:"
        f" give {_LEAST} or more"
      )
    norm = self.norm_layers()
    he_normal = nn.initializers.variance_scaling(2.0, "fan_in", "normal")
    x = images
    for number, features, size, stride, pad, pooled in _CONVS:
      x = nn.Conv(
        features,
        (size, size),
        (stride, stride),
        padding=((pad, pad), (pad, pad)),
        dtype=self.dtype,
        kernel_init=he_normal,
        name=f"features_{number}",
      )(x)
      if number == 0:
        style, domain_logits, domain_probs = self.domains(x, domain_probs)
      x = nn.relu(x)
      if pooled:
        x = nn.max_pool(x, (3, 3), (2, 2))
    x = _average_pool(x, 6)
    # fc6 counts channels first in torch.
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    for number, layer in ((1, 6), (4, 7)):
      x = nn.Dropout(0.5, deterministic=not train)(x)
      x = nn.Dense(
        4096,
        dtype=self.dtype,
        kernel_init=he_normal,
        name=f"classifier_{number}",
      )(x)
      x = nn.relu(norm(x, domain_probs, train, name=f"norm{layer}"))
    features = x.astype(jnp.float32)
    uniform = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
    logits = nn.Dense(
      self.num_classes, kernel_init=uniform, name="classifier_6"
    )(features)
    return Outputs(features, logits, style, domain_logits)


def _average_pool(x: jax.Array, size: int) -> jax.Array:
  """torch's adaptive average pooling, [B, H, W, C] -> [B, size, size, C]."""
  if x.shape[1:3] == (size, size):
    return x
  rows, columns = (_averages(n, size).astype(x.dtype) for n in x.shape[1:3])
  highest = jax.lax.Precision.HIGHEST
  return jnp.einsum("ih,jw,bhwc->bijc", rows, columns, x, precision=highest)


def _averages(length: int, size: int) -> np.ndarray:
  """[size, length]: window i is [floor(i n / size), ceil((i + 1) n / size))."""
  weights = np.zeros((size, length), np.float32)
  for i in range(size):
    start, end = i * length // size, -(-(i + 1) * length // size)
    weights[i, start:end] = 1 / (end - start)
  return weights
