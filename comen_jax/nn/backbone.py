"""What all backbones share: attributes, and domains from style."""

from collections.abc import Mapping
from typing import Any, ClassVar

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.core import FrozenDict
from flax.typing import Dtype

from comen_jax.nn.norms import Norm
from comen_jax.nn.style import DomainPredictor, style_statistics


class Backbone(nn.Module):
  """images [B, H, W, 3], train, domain_probs -> `Outputs`.

  Attributes:
    num_classes: K.
    norm: one of `norms`.
    num_domains: M, of SDNorm.
    dtype: of the layers. Parameters, statistics and head are float32.
    detach_style: no gradient reaches the backbone through the style.
    detach_probs: no gradient reaches F_d and the style through p.
    sdnorm: arguments of `SDNorm`.
    norms: the normalisations there are; the first is the published one.
    style_layers: names of the parameters that the style depends on.
  """

  num_classes: int
  norm: str = "batch"
  num_domains: int = 3
  dtype: Dtype = jnp.float32
  detach_style: bool = False
  detach_probs: bool = False
  sdnorm: Mapping[str, Any] = FrozenDict()
  norms: ClassVar[tuple[str, ...]] = ("none", "batch", "sdnorm")
  style_layers: ClassVar[tuple[str, ...]] = ("conv1",)

  def check(self, images: jax.Array) -> None:
    """At the entry of `__call__`."""
    chex.assert_rank(images, 4)
    if self.norm not in self.norms:
      raise ValueError(
        f"unknown norm {self.norm!r}; choose one of {self.norms}"
      )

  def norm_layers(self, kind: str = "") -> Norm:
    """Makes layers of `kind`, by default the backbone's."""
    return Norm(kind or self.norm, self.num_domains, self.dtype, self.sdnorm)

  def domains(
    self, f: jax.Array, domain_probs: jax.Array | None
  ) -> tuple[jax.Array, jax.Array | None, jax.Array | None]:
    """Style [B, 2C] of f, F_d's logits [B, M], and p: as given, else F_d's."""
    style = style_statistics(f)
    if self.norm != "sdnorm":
      return style, None, None
    # Called even if p is given, so that its parameters are born.
    logits = DomainPredictor(self.num_domains, name="domain_predictor")(
      jax.lax.stop_gradient(style) if self.detach_style else style
    )
    if domain_probs is None:
      domain_probs = jax.nn.softmax(logits)
      if self.detach_probs:
        domain_probs = jax.lax.stop_gradient(domain_probs)
    return style, logits, domain_probs
