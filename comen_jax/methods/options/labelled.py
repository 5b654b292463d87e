"""Options of the methods that use domain labels."""

from typing import Annotated, NamedTuple

from comen_jax import rules


class Vrex(NamedTuple):
  """Settings of VREx.

  Attributes:
    weight: weight of the variance of the domains' losses.
    warmup: share of the run in which the weight rises from 0.
  """

  weight: Annotated[float, rules.NOT_NEGATIVE] = 3.0
  warmup: Annotated[float, rules.PROBABILITY] = 0.1


class Irm(NamedTuple):
  """Settings of IRM.

  Attributes:
    weight: weight of the squared derivatives of the domains' losses.
    warmup: share of the run in which the weight rises from 0.
  """

  weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  warmup: Annotated[float, rules.PROBABILITY] = 0.1


class Coral(NamedTuple):
  """Settings of CORAL.

  Attributes:
    weight: weight of the differences of means and covariances.
  """

  weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0


class Mmd(NamedTuple):
  """Settings of MMD.

  Attributes:
    weight: weight of the maximum mean discrepancy.
  """

  weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0


class GroupDro(NamedTuple):
  """Settings of GroupDRO.

  Attributes:
    rate: eta, how fast the weights of the domains follow their losses.
  """

  rate: Annotated[float, rules.NOT_NEGATIVE] = 0.01


class Dann(NamedTuple):
  """Settings of DANN.

  Attributes:
    weight: weight of the domain loss.
    adversary_clip: largest norm of the reversed gradient in a batch's features,
      before it is weighted.
    width: width of the hidden layers of the discriminator.
  """

  weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  adversary_clip: Annotated[float, rules.POSITIVE] = 0.1
  width: Annotated[int, rules.whole(1)] = 256


class Mldg(NamedTuple):
  """Settings of MLDG.

  Attributes:
    rate: alpha, the learning rate of the inner step.
    weight: beta, the weight of the loss after the inner step.
    first_order: whether the inner step is a constant for the gradient.
  """

  rate: Annotated[float, rules.NOT_NEGATIVE] = 0.01
  weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  first_order: Annotated[bool, rules.FLAG] = False


class CrossGrad(NamedTuple):
  """Settings of CrossGrad.

  Attributes:
    step: how far images are moved along the clipped gradient.
    clip: limit of each value of the gradient.
    share: share of the loss on moved images.
    summed: whether the gradient is that of the sum over the batch, not of its
      mean.
  """

  step: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  clip: Annotated[float, rules.POSITIVE] = 0.1
  share: Annotated[float, rules.PROBABILITY] = 0.5
  summed: Annotated[bool, rules.FLAG] = False
