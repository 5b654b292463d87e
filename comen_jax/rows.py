"""The rows of the paper's tables: names for settings of the config.

A row changes what it names and nothing else, so that all rows of a sweep have
the same epochs, seeds and batches. Rows without SDNorm take the backbone's own
normalisation (`norm` "own"); those named `_bn` tell what BatchNorm alone gives.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from comen_jax.errors import UserError
from comen_jax.methods.registry import METHODS


class Row(NamedTuple):
  """A line of a table.

  Attributes:
    title: as a table prints it.
    settings: of the config, by dotted key.
    latent: whether the number of latent domains M matters to it.
  """

  title: str
  settings: Mapping[str, Any]
  latent: bool = True


def _part(title: str, norm: str, protogr: bool, protoccl: bool) -> Row:
  return Row(
    title,
    {
      "method": "comen",
      "norm": norm,
      "comen.protogr": protogr,
      "comen.protoccl": protoccl,
    },
  )


ROWS = {
  "deepall": Row("DeepAll", {"method": "deepall", "norm": ""}, latent=False),
  "deepall_bn": Row(
    "DeepAll + BatchNorm", {"method": "deepall_bn", "norm": ""}, latent=False
  ),
  "sdnorm": _part("SDNorm", "sdnorm", False, False),
  "protogr": _part("ProtoGR", "own", True, False),
  "protoccl": _part("ProtoCCL", "own", False, True),
  "protogr_protoccl": _part("ProtoGR + ProtoCCL", "own", True, True),
  "sdnorm_protogr": _part("SDNorm + ProtoGR", "sdnorm", True, False),
  "sdnorm_protoccl": _part("SDNorm + ProtoCCL", "sdnorm", False, True),
  "comen": _part("COMEN", "sdnorm", True, True),
  "protogr_protoccl_bn": _part(
    "ProtoGR + ProtoCCL + BatchNorm", "batch", True, True
  ),
  "comen_true_domains": Row(
    "COMEN with true domains (uses domain labels)",
    {**_part("", "sdnorm", True, True).settings, "comen.true_domains": True},
  ),
}

# Table 5 of the paper from its first row to its last, then our controls.
ABLATION = (
  "deepall", "sdnorm", "protogr", "protoccl", "protogr_protoccl",
  "sdnorm_protogr", "sdnorm_protoccl", "comen",
  "deepall_bn", "protogr_protoccl_bn", "comen_true_domains",
)  # fmt: skip


def get(name: str) -> Row:
  """A row by name; any method is one."""
  if name in ROWS:
    return ROWS[name]
  if name in METHODS:
    return Row(name, {"method": name, "norm": ""})
  names = ", ".join([*ROWS, *(m for m in METHODS if m not in ROWS)])
  raise UserError(f"methods={name}: choose of {names}, or ablation")
