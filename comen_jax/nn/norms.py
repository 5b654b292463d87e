"""Which layer normalises, by name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
from flax.typing import Dtype

from comen_jax.nn.sdnorm import SDNorm


@dataclasses.dataclass(frozen=True)
class Norm:
  """Makes the normalisation layers of the module that calls it.

  Attributes:
    kind: "none", "batch" or "sdnorm".
    num_domains: M, of SDNorm.
    dtype: of the output. Parameters and statistics are float32.
    sdnorm: arguments of `SDNorm`.
  """

  kind: str
  num_domains: int
  dtype: Dtype
  sdnorm: Mapping[str, Any]

  def __call__(
    self, x: jax.Array, domain_probs: jax.Array | None, train: bool, name: str
  ) -> jax.Array:
    """x [B, ..., C], domain_probs [B, M] for SDNorm -> [B, ..., C]."""
    if self.kind == "none":
      return x
    if self.kind == "batch":
      norm = nn.BatchNorm(
        momentum=0.9, epsilon=1e-5, dtype=self.dtype, name=name
      )
      return norm(x, use_running_average=not train)
    norm = SDNorm(self.num_domains, dtype=self.dtype, name=name, **self.sdnorm)
    return norm(x, domain_probs, use_running_average=not train)
