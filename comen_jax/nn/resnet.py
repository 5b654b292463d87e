"""ResNet-18, 34 and 50 as in torchvision (He et al. 2016; stride in the 3x3).

Parameters have torchvision's names with "_" in place of ".", so that
`pretrained` needs no table of names.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.typing import Dtype

from comen_jax.nn.backbone import Backbone, Norm, Outputs, Tap
from comen_jax.nn.conv import Conv

STYLE_AT = ("stem", "layer1", "layer2", "layer3", "layer4")
_BLOCKS = {
  10: (1, 1, 1, 1),  # For tests: there are no published weights.
  18: (2, 2, 2, 2),
  34: (3, 4, 6, 3),
  50: (3, 4, 6, 3),
}


class ResNet(Backbone):
  """Stacks a stem, four stages of residual blocks, pooling, a linear head.

  Points are the end of the stem, after its max-pool, and of each stage.

  Attributes:
    depth: number of layers, 18, 34 or 50.
    style_at: layer that gives the style, one of `STYLE_AT`: the raw output of
      the stem's conv, or the output of a stage. All norms after it are SDNorm,
      also those on shortcuts. Norms before it cannot know the domains and are
      BatchNorm.
    sdnorm_stem: whether the stem's own norm is SDNorm; if not, BatchNorm.
    remat: whether the backward pass recomputes the activations of each block
      instead of keeping them, for batches that do not fit into memory.
  """

  depth: int = 18
  style_at: str = "stem"
  sdnorm_stem: bool = True
  remat: bool = False
  norms = ("batch", "sdnorm")
  head = "fc"
  points = (*STYLE_AT, "features")

  @property
  def style_layers(self) -> tuple[str, ...]:
    """Returns the names of the parameters that the style depends on."""
    names = ["conv1"]
    if self.style_at != "stem":
      names.append("bn1")
      stages = range(1, STYLE_AT.index(self.style_at) + 1)
      names += [_name(s, i) for s in stages for i in range(self._blocks[s - 1])]
    return tuple(names)

  @property
  def _blocks(self) -> tuple[int, int, int, int]:
    if self.depth not in _BLOCKS:
      raise ValueError(f"depth={self.depth}: choose one of {tuple(_BLOCKS)}")
    return _BLOCKS[self.depth]

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
      images: [B, H, W, 3], normalised images of 32x32 pixels or more.
      train: whether to use batch statistics and update the running ones.
      domain_probs: [B, M], replaces F_d's softmax; only SDNorm uses it.
      tap: sees and may change the value at each point; see `Backbone`.
      enter: name of the point to start after.
    """
    skipped = self.check(images, domain_probs, enter)
    if self.style_at not in STYLE_AT:
      raise ValueError(f"style_at={self.style_at!r}: choose one of {STYLE_AT}")
    plain = self.norm_layers("batch")
    # Norms cannot know the domains before the style is there.
    known = skipped > STYLE_AT.index(self.style_at)
    norm = self.norm_layers() if known else plain
    block = _Bottleneck if self.depth >= 50 else _BasicBlock
    if self.remat:
      block = nn.remat(block, static_argnums=(3,))

    x, style, domain_logits = images, None, None
    if not skipped:
      make = functools.partial(_conv, 64, 7, 2, self.dtype)
      x = make(name="conv1")(images)
      if self.style_at == "stem":
        f = self.style_map(make, images, x)
        style, domain_logits, domain_probs = self.domains(
          f, domain_probs, train
        )
        norm = self.norm_layers()
      x = (norm if self.sdnorm_stem else plain)(
        x, domain_probs, train, name="bn1"
      )
      # relu(max(x)) = max(relu(x)), with a quarter of the work.
      x = nn.relu(_max_pool(x))
      if tap:
        x = tap("stem", x)
    for stage in range(max(1, skipped), 5):
      for i in range(self._blocks[stage - 1]):
        x = block(
          width=64 * 2 ** (stage - 1),
          stride=2 if stage > 1 and i == 0 else 1,
          norm=norm,
          dtype=self.dtype,
          name=_name(stage, i),
        )(x, domain_probs, train)
      if self.style_at == f"layer{stage}":
        style, domain_logits, domain_probs = self.domains(
          x, domain_probs, train
        )
        norm = self.norm_layers()
      if tap:
        x = tap(f"layer{stage}", x)
    if enter == "features":
      features = x.astype(jnp.float32)
    else:
      features = x.astype(jnp.float32).mean(axis=(1, 2))
      features = tap("features", features) if tap else features
    uniform = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")
    logits = nn.Dense(self.num_classes, kernel_init=uniform, name="fc")(
      features
    )
    return Outputs(features, logits, style, domain_logits)


class _BasicBlock(nn.Module):
  """Adds two 3x3 convolutions to a shortcut."""

  width: int
  stride: int
  norm: Norm
  dtype: Dtype

  @nn.compact
  def __call__(
    self, x: jax.Array, domain_probs: jax.Array | None, train: bool
  ) -> jax.Array:
    y = _conv(self.width, 3, self.stride, self.dtype, name="conv1")(x)
    y = nn.relu(self.norm(y, domain_probs, train, name="bn1"))
    y = _conv(self.width, 3, 1, self.dtype, name="conv2")(y)
    y = self.norm(y, domain_probs, train, name="bn2")
    return nn.relu(y + _shortcut(self, x, y.shape[-1], domain_probs, train))


class _Bottleneck(nn.Module):
  """Adds 1x1, 3x3 and 1x1 convolutions to a shortcut; has 4 * width outputs."""

  width: int
  stride: int
  norm: Norm
  dtype: Dtype

  @nn.compact
  def __call__(
    self, x: jax.Array, domain_probs: jax.Array | None, train: bool
  ) -> jax.Array:
    y = _conv(self.width, 1, 1, self.dtype, name="conv1")(x)
    y = nn.relu(self.norm(y, domain_probs, train, name="bn1"))
    y = _conv(self.width, 3, self.stride, self.dtype, name="conv2")(y)
    y = nn.relu(self.norm(y, domain_probs, train, name="bn2"))
    y = _conv(4 * self.width, 1, 1, self.dtype, name="conv3")(y)
    y = self.norm(y, domain_probs, train, name="bn3")
    return nn.relu(y + _shortcut(self, x, y.shape[-1], domain_probs, train))


def _shortcut(
  block: _BasicBlock | _Bottleneck,
  x: jax.Array,
  channels: int,
  domain_probs: jax.Array | None,
  train: bool,
) -> jax.Array:
  """Returns x, or its projection where the block changes the shape."""
  if block.stride == 1 and x.shape[-1] == channels:
    return x
  x = _conv(channels, 1, block.stride, block.dtype, name="downsample_0")(x)
  return block.norm(x, domain_probs, train, name="downsample_1")


def _conv(
  features: int, size: int, stride: int, dtype: Dtype, **options: Any
) -> Conv:
  # "SAME" pads the sides differently at stride 2; torch pads them equally.
  pad = (size // 2, size // 2)
  return Conv(
    features,
    (size, size),
    (stride, stride),
    padding=(pad, pad),
    use_bias=False,
    dtype=dtype,
    kernel_init=nn.initializers.variance_scaling(2.0, "fan_out", "normal"),
    **options,
  )


def _max_pool(x: jax.Array) -> jax.Array:
  """Pools 3x3 with stride 2 and padding 1, as torch does.

  It pools rows first, then columns. On CPU the gradient of nn.max_pool takes
  longer, and five times the memory of x. Equal maxima of a window share the
  gradient.
  """
  for axis in (1, 2):
    length = x.shape[axis]
    pads = [(0, 0)] * 4
    pads[axis] = (1, 1)
    padded = jnp.pad(x, pads, constant_values=-jnp.inf)
    outputs = (length + 1) // 2
    parts = (
      jax.lax.slice_in_dim(padded, i, i + 2 * outputs - 1, 2, axis)
      for i in range(3)
    )
    x = functools.reduce(jnp.maximum, parts)
  return x


def _name(stage: int, block: int) -> str:
  return f"layer{stage}_{block}"
