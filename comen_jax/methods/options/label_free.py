"""Options of the methods that use no domain labels."""

from typing import Annotated, NamedTuple

from comen_jax import rules


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
