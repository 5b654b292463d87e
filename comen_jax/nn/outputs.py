"""What every backbone returns."""

import flax.struct
import jax


@flax.struct.dataclass
class Outputs:
  """All float32.

  Attributes:
    features: [B, D], what the head and the prototypes see.
    logits: [B, K].
    style: [B, 2C], mean and std of the first conv's raw output.
    domain_logits: [B, M] of F_d; None without SDNorm.
  """

  features: jax.Array
  logits: jax.Array
  style: jax.Array
  domain_logits: jax.Array | None
