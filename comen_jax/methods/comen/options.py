"""The settings of COMEN, and what is checked about them."""

from typing import NamedTuple

from comen_jax.errors import UserError
from comen_jax.methods.comen import discovery


class Options(NamedTuple):
  """Settings of COMEN; `config.comen` sets them.

  Attributes:
    protogr: use the loss ProtoGR.
    protoccl: use the loss ProtoCCL.
    protogr_weight: weight of ProtoGR, lambda of Eq. 16.
    protoccl_weight: weight of ProtoCCL, gamma of Eq. 16.
    prototype_decay: decay of the prototypes, rho of Eq. 7.
    affinity_threshold: threshold of the graph, delta of Eq. 8.
    temperature: temperature of ProtoCCL, tau of Eq. 14.
    protoccl_normalize: L2-normalise the prototypes in Eq. 14.
    entropy_weight: weight of L_d (Eq. 3) in discover.
    balance_weight: weight of log M - H(mean p) in discover; this term keeps the
      domains apart.
    clustering: name of the clustering of style, see `discovery.CLUSTERINGS`.
    portion: share of the source training images that is clustered.
    pretrain_steps: number of steps that pretrain F_d.
    style_gradient: let the losses of discover reach the backbone through the
      style. At the learning rate of digits this merges the domains.
    freeze_style_layer: freeze the layers that give the style, in encode.
    true_domains: pretrain F_d and label the prototypes with true domains. A
      method without domain labels must not claim such a result.
  """

  protogr: bool = True
  protoccl: bool = True
  protogr_weight: float = 0.1
  protoccl_weight: float = 0.1
  prototype_decay: float = 0.7
  affinity_threshold: float = 0.5
  temperature: float = 0.5
  protoccl_normalize: bool = True
  entropy_weight: float = 1.0
  balance_weight: float = 1.0
  clustering: str = "gmm"
  portion: float = 0.3
  pretrain_steps: int = 1000
  style_gradient: bool = False
  freeze_style_layer: bool = False
  true_domains: bool = False


def check(options: Options) -> None:
  """Raises UserError at a value that cannot be right."""
  if options.clustering not in discovery.CLUSTERINGS:
    raise UserError(
      f"comen.clustering={options.clustering!r}: choose one of"
      f" {', '.join(discovery.CLUSTERINGS)}"
    )
  if not 0 < options.portion <= 1:
    raise UserError(
      f"comen.portion={options.portion}: give a share above 0 and at most 1"
    )
