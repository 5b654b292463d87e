"""Methods by name. A new method is a file here and a line in `METHODS`."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from comen_jax.errors import UserError
from comen_jax.methods import comen, deepall
from comen_jax.methods.base import Method, Task


class Entry(NamedTuple):
  """How a method is made.

  Attributes:
    create: (task, options) -> the method.
    options: NamedTuple class of the method's settings, with defaults.
    norm: normalisation that the method comes with; "own" is the backbone's own
      (none for digits, batch for ResNet).
  """

  create: Callable[[Task, Any], Method]
  options: type
  norm: str


METHODS = {
  "comen": Entry(comen.create, comen.Options, "sdnorm"),
  "deepall": Entry(deepall.create, deepall.Options, "own"),
  "deepall_bn": Entry(deepall.create, deepall.Options, "batch"),
}


def create(name: str, task: Task, settings: Mapping[str, Any]) -> Method:
  """Makes the method `name`.

  Args:
    name: a key of `METHODS`.
    task: what the method is built for.
    settings: values of the method's options; the others keep their defaults.
  """
  entry = METHODS[name]
  fields = entry.options._fields
  if unknown := [key for key in settings if key not in fields]:
    raise UserError(
      f"config.{name}.{unknown[0]}: {name} has no such option; it has"
      f" {', '.join(fields) or 'none'}"
    )
  return entry.create(task, entry.options(**settings))
