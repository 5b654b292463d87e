"""Options of the methods that use no domain labels."""

from typing import Annotated, NamedTuple

from comen_jax import rules

_GRID = rules.Rule(
  lambda v: rules.is_whole(v) and (v == 0 or 2 <= v <= 8),
  "0, or a whole number, 2 to 8",
)


class MixStyle(NamedTuple):
  """Settings of MixStyle.

  Attributes:
    layers: points of the backbone where styles are mixed, such as ("layer1",
      "layer2"); () takes every layer but the last.
    probability: probability that a point mixes, drawn once for the whole batch.
    alpha: both parameters of the Beta distribution of lambda.
  """

  layers: Annotated[tuple[str, ...], rules.NAMES] = ()
  probability: Annotated[float, rules.PROBABILITY] = 0.5
  alpha: Annotated[float, rules.POSITIVE] = 0.1


class Rsc(NamedTuple):
  """Settings of RSC.

  Attributes:
    position_probability: probability that a step mutes positions, not channels.
    position_share: share of the positions of a feature map that are muted.
    channel_share: share of its channels that are muted.
    image_share: share of the images that are muted at most, in the first half
      of the epochs.
    image_growth: added to that share in the second half.
    mirror: add a mirrored copy of every image to the batch, as the official
      code does.
  """

  position_probability: Annotated[float, rules.PROBABILITY] = 0.5
  position_share: Annotated[float, rules.PROBABILITY] = 1 / 3
  channel_share: Annotated[float, rules.PROBABILITY] = 1 / 3.2
  image_share: Annotated[float, rules.PROBABILITY] = 0.3
  image_growth: Annotated[float, rules.PROBABILITY] = 0.2
  mirror: Annotated[bool, rules.FLAG] = False


class SfaS(NamedTuple):
  """Settings of SFA-S.

  Attributes:
    scale_deviation: deviation of the factor of each feature from 1, s1.
    shift_deviation: deviation of what is added to each feature, s2.
  """

  scale_deviation: Annotated[float, rules.NOT_NEGATIVE] = 0.3
  shift_deviation: Annotated[float, rules.NOT_NEGATIVE] = 0.3


class SfaA(NamedTuple):
  """Settings of SFA-A.

  Attributes:
    strength: factor of the noise; 1 gives it the covariance of the class, at
      which the digits CNN without norms diverges.
    window: number of features of a class that the covariance is taken of.
  """

  strength: Annotated[float, rules.NOT_NEGATIVE] = 0.3
  window: Annotated[int, rules.whole(2, 100_000)] = 64


class Mmld(NamedTuple):
  """Settings of MMLD.

  Attributes:
    layers: points of the backbone whose style is clustered; () takes the first
      two layers.
    components: number of principal components of the style.
    adversary_weight: largest weight of the reversed gradient; a tenth of it
      counts for a network that has no norms and starts at random.
    adversary_clip: largest norm of the reversed gradient in a batch's features,
      before it is weighted.
    entropy_weight: largest weight of the entropy of class predictions.
    width: width of the hidden layers of the discriminator.
    dropout: probability that one of its hidden units is dropped.
    new_layer_scale: how much faster the head and the discriminator learn than a
      pretrained backbone. Without pretrained weights all learn at one rate.
  """

  layers: Annotated[tuple[str, ...], rules.NAMES] = ()
  components: Annotated[int, rules.whole(1, 100_000)] = 256
  adversary_weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  adversary_clip: Annotated[float, rules.POSITIVE] = 0.1
  entropy_weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  width: Annotated[int, rules.whole(1, 100_000)] = 1024
  dropout: Annotated[float, rules.DECAY] = 0.5
  new_layer_scale: Annotated[float, rules.POSITIVE] = 10.0


class Fact(NamedTuple):
  """Settings of FACT.

  Attributes:
    strength: largest part of the other image's amplitude spectrum.
    weight: weight of the divergence from the teacher.
    ramp_share: share of the epochs in which that weight grows.
    temperature: temperature that divides the logits in the divergence.
    decay: largest decay of the teacher's parameters.
  """

  strength: Annotated[float, rules.PROBABILITY] = 1.0
  weight: Annotated[float, rules.NOT_NEGATIVE] = 2.0
  ramp_share: Annotated[float, rules.PROBABILITY] = 0.1
  temperature: Annotated[float, rules.POSITIVE] = 10.0
  decay: Annotated[float, rules.PROBABILITY] = 0.9995


class SelfReg(NamedTuple):
  """Settings of SelfReg.

  Attributes:
    feature_weight: weight of the distance of features against that of logits.
  """

  feature_weight: Annotated[float, rules.NOT_NEGATIVE] = 0.3


class JiGen(NamedTuple):
  """Settings of JiGen.

  Attributes:
    order_weight: weight of the cross-entropy of the order.
    unshuffled: probability that an image keeps its order, beta.
    grid: number of tiles along a side; 0 takes 3, or 4 for images of less than
      64 pixels that 3 does not divide.
    permutations: number of orders beside the image's own.
    tile_grayscale: probability that a tile loses its colour.
    classify_shuffled: classify images in every order, not only in their own.
  """

  order_weight: Annotated[float, rules.NOT_NEGATIVE] = 0.7
  unshuffled: Annotated[float, rules.PROBABILITY] = 0.9
  grid: Annotated[int, _GRID] = 0
  permutations: Annotated[int, rules.whole(1, 1000)] = 30
  tile_grayscale: Annotated[float, rules.PROBABILITY] = 0.1
  classify_shuffled: Annotated[bool, rules.FLAG] = True


class RandConv(NamedTuple):
  """Settings of RandConv. (5.0, False, 0.5) are those of its form RC_img.

  Attributes:
    weight: weight of the disagreement of three draws.
    mix: mix the convolved image with the image itself.
    keep: probability that a draw leaves the images as they are.
  """

  weight: Annotated[float, rules.NOT_NEGATIVE] = 10.0
  mix: Annotated[bool, rules.FLAG] = True
  keep: Annotated[float, rules.PROBABILITY] = 0.0


class EISNet(NamedTuple):
  """Settings of EISNet.

  Attributes:
    order_weight: weight of the cross-entropy of the order.
    unshuffled: probability that an image keeps its order.
    grid: number of tiles along a side; 0 takes 3, or 4 for images of less than
      64 pixels that 3 does not divide.
    permutations: number of orders beside the image's own.
    tile_grayscale: probability that a tile loses its colour.
    triplet_weight: weight of the triplets at the end; half of it at the start.
    margin: margin of the triplets.
    embedding: size of an embedding.
    queue: number of embeddings in the queue.
    negatives: largest number of negatives that a pair counts for.
    decay: decay of the teacher's parameters; the largest one if the backbone is
      not pretrained.
  """

  order_weight: Annotated[float, rules.NOT_NEGATIVE] = 0.7
  unshuffled: Annotated[float, rules.PROBABILITY] = 0.9
  grid: Annotated[int, _GRID] = 0
  permutations: Annotated[int, rules.whole(1, 1000)] = 30
  tile_grayscale: Annotated[float, rules.PROBABILITY] = 0.1
  triplet_weight: Annotated[float, rules.NOT_NEGATIVE] = 1.0
  margin: Annotated[float, rules.POSITIVE] = 2.0
  embedding: Annotated[int, rules.whole(1, 100_000)] = 128
  queue: Annotated[int, rules.whole(1, 10_000_000)] = 1024
  negatives: Annotated[int, rules.whole(1, 10_000_000)] = 256
  decay: Annotated[float, rules.PROBABILITY] = 0.999


class SagNet(NamedTuple):
  """Settings of SagNet.

  Attributes:
    adversary_weight: weight of the adversary.
    adversary_clip: largest norm of the adversary's gradient.
    dropout: probability that a feature is dropped, in both paths.
  """

  adversary_weight: Annotated[float, rules.NOT_NEGATIVE] = 0.1
  adversary_clip: Annotated[float, rules.POSITIVE] = 0.1
  dropout: Annotated[float, rules.DECAY] = 0.5
