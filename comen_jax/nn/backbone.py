"""What all backbones share: attributes, outputs, norms, domains from style."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar

import chex
import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
from flax.core import FrozenDict
from flax.typing import Dtype

from comen_jax.nn.batch_norm import BatchNorm
from comen_jax.nn.sdnorm import SDNorm
from comen_jax.nn.style import DomainPredictor, style_statistics

STYLE_COPY = "style_copy"  # In batch_stats: the copy of the first convolution.
STYLE_FROM = ("copy", "start", "pixels", "live")
Tap = Callable[[str, jax.Array], jax.Array]


@flax.struct.dataclass
class Outputs:
  """Holds what a backbone computes, all in float32.

  Attributes:
    features: [B, D], input of the head and of the prototypes.
    logits: [B, K], class logits.
    style: [B, 2C], channel-wise mean and std of an early feature map; None if
      the network was entered after it.
    domain_logits: [B, M], logits of F_d; None without SDNorm or style.
  """

  features: jax.Array
  logits: jax.Array
  style: jax.Array | None
  domain_logits: jax.Array | None


@dataclasses.dataclass(frozen=True)
class Norm:
  """Makes and applies the normalisation layers of the module that calls it.

  Attributes:
    kind: "none", "batch" or "sdnorm".
    num_domains: number of latent domains M, used by SDNorm.
    dtype: dtype of the output. Parameters and statistics are float32.
    sdnorm: arguments of `SDNorm`.
  """

  kind: str
  num_domains: int
  dtype: Dtype
  sdnorm: Mapping[str, bool | float]

  def __call__(
    self, x: jax.Array, domain_probs: jax.Array | None, train: bool, name: str
  ) -> jax.Array:
    """Maps x [B, ..., C] to [B, ..., C]; SDNorm needs domain_probs [B, M]."""
    if self.kind == "none":
      return x
    if self.kind == "batch":
      norm = BatchNorm(dtype=self.dtype, name=name)
      return norm(x, use_running_average=not train)
    norm = SDNorm(self.num_domains, dtype=self.dtype, name=name, **self.sdnorm)
    return norm(x, domain_probs, use_running_average=not train)


class Backbone(nn.Module):
  """Maps images [B, H, W, 3], train and domain_probs to `Outputs`.

  A training loss may reach into the network, which costs nothing if it does
  not. At each of its `points`, `tap(name, x)` gets the value x and returns the
  one that the network goes on with. `enter`, the name of a point, starts after
  that point: `images` are then the value there, the layers before it are
  skipped and need no parameters, and SDNorm needs `domain_probs`.

  Attributes:
    num_classes: number of classes K.
    norm: normalisation, one of `norms`.
    num_domains: number of latent domains M, used by SDNorm.
    dtype: dtype of the layers. Parameters, statistics and head are float32.
    detach_style: whether to stop the gradient from F_d into the backbone.
    detach_probs: whether to stop the gradient from p into F_d and the style.
    style_from: map whose style F_d reads, one of `STYLE_FROM`. "live" is the
      first convolution as it is. "copy" and "start" are a copy of it,
      `batch_stats/style_copy`, which no step trains: it starts as the first
      weights, and for "copy" a method renews it when it finds the domains.
      "pixels" are the image and its differences to the next row and column. All
      but "live" are a fixed function of the image.
    test_temperature: p is softmax(logits / this) in evaluation.
    sdnorm: arguments of `SDNorm`.
    norms: normalisations that the backbone can have, the published one first.
    style_layers: names of the parameters that the style depends on.
    head: name of the linear layer that maps features to logits.
    points: names of the points, in order: feature maps [B, H, W, C], then
      "features" [B, D], which the head sees.
  """

  num_classes: int
  norm: str = "batch"
  num_domains: int = 3
  dtype: Dtype = jnp.float32
  detach_style: bool = False
  detach_probs: bool = False
  style_from: str = "live"
  test_temperature: float = 1.0
  sdnorm: Mapping[str, bool | float] = FrozenDict()
  norms: ClassVar[tuple[str, ...]] = ("none", "batch", "sdnorm")
  style_layers: ClassVar[tuple[str, ...]] = ("conv1",)
  head: ClassVar[str] = "head"
  points: ClassVar[tuple[str, ...]]

  def check(
    self, images: jax.Array, domain_probs: jax.Array | None, enter: str
  ) -> int:
    """Checks the input and `norm`; call it first in `__call__`.

    Returns:
      The number of points that `enter` skips, 0 if it is "".
    """
    if enter and enter not in self.points:
      raise ValueError(f"enter={enter!r}: choose one of {self.points}")
    if enter and self.norm == "sdnorm" and domain_probs is None:
      raise ValueError(f"enter={enter!r}: SDNorm needs domain_probs there")
    chex.assert_rank(images, 2 if enter == "features" else 4)
    if self.norm not in self.norms:
      raise ValueError(
        f"unknown norm {self.norm!r}; choose one of {self.norms}"
      )
    return self.points.index(enter) + 1 if enter else 0

  def norm_layers(self, kind: str = "") -> Norm:
    """Returns a maker of layers of `kind`, by default the backbone's norm."""
    return Norm(kind or self.norm, self.num_domains, self.dtype, self.sdnorm)

  def style_map(
    self, make: Callable[..., nn.Module], images: jax.Array, live: jax.Array
  ) -> jax.Array:
    """The feature map whose style is taken, as `style_from` says.

    Args:
      make: makes the first convolution; it takes `name` or `parent`.
      images: [B, H, W, 3], its input.
      live: [B, H', W', C], its output.
    """
    if self.style_from == "live" or self.norm != "sdnorm":
      return live
    if self.style_from == "pixels":
      return pixels_and_differences(images)
    first = make(parent=None)

    def zeros():
      shapes = jax.eval_shape(first.init, jax.random.key(0), images[:1])
      return jax.tree.map(lambda x: jnp.zeros(x.shape), shapes["params"])

    copy = self.variable("batch_stats", STYLE_COPY, zeros)
    return first.apply({"params": copy.value}, images)

  def domains(
    self, f: jax.Array, domain_probs: jax.Array | None, train: bool
  ) -> tuple[jax.Array, jax.Array | None, jax.Array | None]:
    """Finds the latent domains of a feature map.

    Args:
      f: [B, H, W, C].
      domain_probs: [B, M], used as p if given; else p is F_d's softmax.
      train: whether this is training; evaluation has a temperature.

    Returns:
      The style [B, 2C], F_d's logits [B, M] and p [B, M]. The last two are
      None without SDNorm.
    """
    style = style_statistics(f)
    if self.norm != "sdnorm":
      return style, None, None
    # Called even if p is given, so that init creates its parameters.
    logits = DomainPredictor(self.num_domains, name="domain_predictor")(
      jax.lax.stop_gradient(style) if self.detach_style else style
    )
    if domain_probs is None:
      temperature = 1.0 if train else self.test_temperature
      domain_probs = jax.nn.softmax(logits / temperature)
      if self.detach_probs:
        domain_probs = jax.lax.stop_gradient(domain_probs)
    return style, logits, domain_probs


def pixels_and_differences(images: jax.Array) -> jax.Array:
  """Pixels, and their differences along x and y, as a feature map.

  Args:
    images: [B, H, W, 3].

  Returns:
    [B, H - 1, W - 1, 9].
  """
  here = images[:, :-1, :-1]
  right, below = images[:, :-1, 1:], images[:, 1:, :-1]
  return jnp.concatenate([here, right - here, below - here], axis=-1)
