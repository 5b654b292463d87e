"""Methods by name. A new one is a file here and a line in `METHODS`."""

from collections.abc import Callable
from typing import NamedTuple

from comen_jax.methods import comen, deepall
from comen_jax.stage import Method


class Entry(NamedTuple):
  """How a method is made, and the normalisation it comes with.

  `create(task, **options)`; options are the config's block of that name.
  `norm` "own" is the backbone's own: none for digits, batch for ResNet.
  """

  create: Callable[..., Method]
  norm: str


METHODS = {
  "comen": Entry(comen.create, "sdnorm"),
  "deepall": Entry(deepall.create, "own"),
  "deepall_bn": Entry(deepall.create, "batch"),
}
