"""AlexNet as in torchvision (one column: Krizhevsky 2014).

Parameters have torchvision's names with "_" in place of ".": `features_0` is
conv1, `classifier_1` and `classifier_4` are fc6 and fc7.
"""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from comen_jax.errors import UserError
from comen_jax.nn.backbone import Backbone, Outputs, Tap
from comen_jax.nn.conv import Conv

MIN_SIZE = 63  # A smaller image leaves nothing for the last pooling.
# Layer, torchvision's number, features, kernel, stride, padding, and whether a
# max-pool ends the layer.
_CONVS = (
  (1, 0, 64, 11, 4, 2, True),
  (2, 3, 192, 5, 1, 2, True),
  (3, 6, 384, 3, 1, 1, False),
  (3, 8, 256, 3, 1, 1, False),
  (3, 10, 256, 3, 1, 1, True),
)
_HE_NORMAL = nn.initializers.variance_scaling(2.0, "fan_in", "normal")


class AlexNet(Backbone):
  """Stacks five convolutions, two hidden layers with dropout, a linear head.

  The published network has no norm. Here `norm` comes after fc6 and after fc7,
  before their ReLU. Points come after each max-pool: after conv1, conv2 and
  conv5.
  """

  style_layers = ("features_0",)
  head = "classifier_6"
  points = ("layer1", "layer2", "layer3", "features")

  @nn.compact
  def __call__(
    self,
    images: jax.Array,
    train: bool,
    domain_probs: jax.Array | None = None,
    *,
    tap: Tap | None = None,
    enter: str = "",
  ) -> Outputs:
    """Computes features (fc7), logits, style and domain logits of a batch.

    Args:
      images: [B, H, W, 3], normalised images of 63x63 pixels or more.
      train: whether to drop units out, use batch statistics and update the
        running ones.
      domain_probs: [B, M], replaces F_d's softmax; only SDNorm uses it.
      tap: sees and may change the value at each point; see `Backbone`.
      enter: name of the point to start after.
    """
    skipped = self.check(images, domain_probs, enter)
    if not enter and min(images.shape[1:3]) < MIN_SIZE:
      raise UserError(
        f"image_size={min(images.shape[1:3])} is too small for AlexNet:"
        f" give {MIN_SIZE} or more"
      )
    x, style, domain_logits = images, None, None
    for layer, number, features, size, stride, pad, pooled in _CONVS:
      if layer <= skipped:
        continue
      make = partial(
        Conv,
        features,
        (size, size),
        (stride, stride),
        padding=((pad, pad), (pad, pad)),
        dtype=self.dtype,
        kernel_init=_HE_NORMAL,
      )
      x = make(name=f"features_{number}")(x)
      if number == 0:
        f = self.style_map(make, images, x)
        style, domain_logits, domain_probs = self.domains(
          f, domain_probs, train
        )
      x = nn.relu(x)
      if pooled:
        x = nn.max_pool(x, (3, 3), (2, 2))
        x = tap(f"layer{layer}", x) if tap else x
    if enter != "features":
      x = self._hidden_layers(x, domain_probs, train)
      x = tap("features", x) if tap else x
    uniform = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
    logits = nn.Dense(
      self.num_classes, kernel_init=uniform, name="classifier_6"
    )(x)
    return Outputs(x, logits, style, domain_logits)

  def _hidden_layers(
    self, x: jax.Array, domain_probs: jax.Array | None, train: bool
  ) -> jax.Array:
    """Maps the last feature map to the features [B, 4096], float32."""
    norm = self.norm_layers()
    x = _average_pool(x, 6)
    # The kernel of fc6 has torch's order, channels first.
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    for number, layer in ((1, 6), (4, 7)):
      x = nn.Dropout(0.5, deterministic=not train)(x)
      x = nn.Dense(
        4096,
        dtype=self.dtype,
        kernel_init=_HE_NORMAL,
        name=f"classifier_{number}",
      )(x)
      x = nn.relu(norm(x, domain_probs, train, name=f"norm{layer}"))
    return x.astype(jnp.float32)


def _average_pool(x: jax.Array, size: int) -> jax.Array:
  """Pools [B, H, W, C] to [B, size, size, C], as torch's AdaptiveAvgPool2d."""
  if x.shape[1:3] == (size, size):
    return x
  rows, columns = (_averages(n, size).astype(x.dtype) for n in x.shape[1:3])
  highest = jax.lax.Precision.HIGHEST
  return jnp.einsum("ih,jw,bhwc->bijc", rows, columns, x, precision=highest)


def _averages(length: int, size: int) -> np.ndarray:
  """Makes the pooling matrix [size, n] of n = `length` pixels.

  Window i covers the pixels from floor(i n / size) to ceil((i + 1) n / size).
  """
  weights = np.zeros((size, length), np.float32)
  for i in range(size):
    start, end = i * length // size, -(-(i + 1) * length // size)
    weights[i, start:end] = 1 / (end - start)
  return weights
