"""The settings of COMEN, and what is checked about them."""

from typing import NamedTuple

from comen_jax.errors import UserError
from comen_jax.methods.base import Setup, split_epochs
from comen_jax.methods.comen import clustering
from comen_jax.nn.backbone import STYLE_FROM

FORMS = ("raw", "unit", "centred")
STYLE_VIEWS = ("picture", "training")


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
    prototype_form: what Eq. 8 and Eq. 14 compare: "raw" prototypes as the paper
      prints them, prototypes of "unit" length, or "centred" ones: the mean
      prototype is subtracted, then they get unit length. Eq. 8 takes cosines
      in each case.
    straight_through: let the gradient of a prototype be that of the batch's
      mean, not 1 - rho times as much (Eq. 7). Its value is the same.
    shared_attention: let both layers of ProtoGR share W and a, as Eq. 9 prints
      them.
    entropy_weight: weight of L_d (Eq. 3) in discover.
    balance_weight: weight of log M - H(mean p) in discover; this term keeps the
      domains apart.
    anchor_weight: weight of the cross-entropy between F_d and the labels of
      the clustering in discover; this term keeps the domains what they are.
    clustering: name of the clustering of style, see `clustering.CLUSTERINGS`.
    portion: share of the source training images that is clustered.
    pretrain_steps: number of steps that pretrain F_d.
    pretrain_views: number of training views of each image that F_d learns from,
      if `style_view` is "training".
    pretrain_noise: deviation of the noise that is added to the standardised
      style while F_d is pretrained. It makes p soft between domains.
    style_from: what F_d reads the style of: "copy": a copy of the first
      convolution, kept from the moment of clustering; "start": a copy kept from
      the start of the run; "pixels": the image and its differences to the next
      row and column; "live": the layer itself, under which the domains drift.
    style_view: whose style decides the domain of an image in training: that of
      its "picture", as in evaluation, or that of the "training" view, whose
      colours may be changed. Without augmentation both are the same.
    test_temperature: p is softmax(logits / this) in evaluation.
    style_gradient: let the losses of discover reach the backbone through the
      style. At the learning rate of digits this merges the domains.
    freeze_style_layer: freeze the layers that give the style, in encode.
    true_domains: in training, SDNorm and the prototypes get the true domains,
      and F_d learns them. In evaluation p is F_d's. A method without domain
      labels must not claim such a result.
  """

  protogr: bool = True
  protoccl: bool = True
  protogr_weight: float = 0.1
  protoccl_weight: float = 0.1
  prototype_decay: float = 0.7
  affinity_threshold: float = 0.5
  temperature: float = 0.5
  prototype_form: str = "centred"
  straight_through: bool = False
  shared_attention: bool = False
  entropy_weight: float = 1.0
  balance_weight: float = 1.0
  anchor_weight: float = 1.0
  clustering: str = "gmm"
  portion: float = 0.3
  pretrain_steps: int = 1000
  pretrain_views: int = 2
  pretrain_noise: float = 0.3
  style_from: str = "copy"
  style_view: str = "picture"
  test_temperature: float = 1.0
  style_gradient: bool = False
  freeze_style_layer: bool = False
  true_domains: bool = False


def check(options: Options, setup: Setup) -> None:
  """Raises UserError at a name or a number of shares that cannot be right.

  `ranges.py` has the ranges of the numbers.
  """
  choices = {
    "clustering": clustering.CLUSTERINGS,
    "prototype_form": FORMS,
    "style_from": STYLE_FROM,
    "style_view": STYLE_VIEWS,
  }
  for name, known in choices.items():
    if getattr(options, name) not in known:
      raise UserError(
        f"comen.{name}={getattr(options, name)!r}: choose one of"
        f" {', '.join(known)}"
      )
  if len(setup.stage_shares) != 3:
    raise UserError(
      f"stage_shares={setup.stage_shares}: COMEN has three stages; give three"
      " shares (warm-up, discover, encode) that sum to 1"
    )
  split_epochs(setup.epochs, setup.stage_shares)
