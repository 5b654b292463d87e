"""The backbone for Digits-DG: four small convolutions."""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp

from comen_jax.nn.backbone import Backbone, Outputs, Tap
from comen_jax.nn.conv import Conv


class DigitsCNN(Backbone):
  """Stacks four blocks and a linear head.

  Each block has a 3x3 conv of 64 channels, a norm, a ReLU and a 2x2 max-pool.
  Points are the ends of the blocks.
  """

  points = ("layer1", "layer2", "layer3", "layer4", "features")

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
    """Computes features, logits, style and domain logits of a batch.

    Args:
      images: [B, H, W, 3], normalised images; 32x32 gives 256 features.
      train: whether to use batch statistics and update the running ones.
      domain_probs: [B, M], replaces F_d's softmax; only SDNorm uses it.
      tap: sees and may change the value at each point; see `Backbone`.
      enter: name of the point to start after.
    """
    skipped = self.check(images, domain_probs, enter)
    norm = self.norm_layers()
    he_normal = nn.initializers.variance_scaling(2.0, "fan_in", "normal")
    x, style, domain_logits = images, None, None
    for i in range(skipped + 1, 5):
      make = partial(Conv, 64, (3, 3), dtype=self.dtype, kernel_init=he_normal)
      x = make(name=f"conv{i}")(x)
      if i == 1:
        f = self.style_map(make, images, x)
        style, domain_logits, domain_probs = self.domains(
          f, domain_probs, train
        )
      x = norm(x, domain_probs, train, name=f"norm{i}")
      # relu(max(x)) = max(relu(x)), with a quarter of the work.
      x = nn.relu(max_pool(x))
      if tap:
        x = tap(f"layer{i}", x)
    features = x.reshape(x.shape[0], -1).astype(jnp.float32)
    if tap and enter != "features":
      features = tap("features", features)
    logits = nn.Dense(self.num_classes, name="head")(features)
    return Outputs(features, logits, style, domain_logits)


def max_pool(x: jax.Array) -> jax.Array:
  """Pools 2x2 with stride 2; drops an odd row or column as nn.max_pool does.

  On CPU its gradient is much faster than that of nn.max_pool. Equal maxima of a
  window share the gradient.
  """
  B, H, W, C = x.shape
  x = x[:, : H // 2 * 2, : W // 2 * 2].reshape(B, H // 2, 2, W // 2, 2, C)
  x = jnp.maximum(x[:, :, 0], x[:, :, 1])
  return jnp.maximum(x[:, :, :, 0], x[:, :, :, 1])
