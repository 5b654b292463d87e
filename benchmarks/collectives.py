"""Finds the collectives in the text of a compiled step (HLO).

A collective is an operation in which several devices exchange data. A pair of
`-start` and `-done` is one collective: only the start is counted.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

KINDS = (
  "all-reduce", "all-gather", "reduce-scatter", "all-to-all",
  "collective-permute",
)  # fmt: skip
_BITS = {"pred": 8, "bf16": 16}  # The others have their bits in the name.
_LINE = re.compile(
  rf"^\s*(?:ROOT )?%?[\w.-]+ = (.+?) ({'|'.join(KINDS)})(-start)?\((.*)$",
  re.MULTILINE,
)
_ARRAY = re.compile(r"\b(pred|[a-z]+\d+)\w*\[([\d,]*)\]")
_OP_NAME = re.compile(r'op_name="([^"]*)"')


class Array(NamedTuple):
  """An array that a collective exchanges.

  Attributes:
    dtype: its dtype, as HLO spells it: f32, bf16, s32, ...
    shape: its shape on one device.
  """

  dtype: str
  shape: tuple[int, ...]

  @property
  def size(self) -> int:
    return math.prod(self.shape)

  @property
  def bytes(self) -> int:
    bits = _BITS.get(self.dtype) or int(re.sub(r"\D", "", self.dtype))
    return self.size * bits // 8


class Collective(NamedTuple):
  """A collective of a step.

  Attributes:
    kind: one of `KINDS`.
    arrays: its results; XLA joins several small collectives into one.
    group: number of devices that exchange data with each other.
    op_name: where it comes from: the operation's path in our code. One name
      stands for all arrays of a joined collective.
  """

  kind: str
  arrays: tuple[Array, ...]
  group: int
  op_name: str

  @property
  def bytes(self) -> int:
    """Bytes of the results. A reduce-scatter reads `group` times as many."""
    total = sum(array.bytes for array in self.arrays)
    return total * self.group if self.kind == "reduce-scatter" else total


def find(text: str, devices: int) -> list[Collective]:
  """Finds the collectives between two or more devices.

  Args:
    text: HLO of a compiled step.
    devices: number of devices that the step is compiled for.
  """
  found = []
  for shapes, kind, start, rest in _LINE.findall(text):
    arrays = tuple(
      Array(dtype, tuple(int(d) for d in dims.split(",") if d))
      for dtype, dims in _ARRAY.findall(shapes)
    )
    if start and kind != "all-reduce":
      # The start of other kinds gives (operands, results, contexts).
      arrays = (max(arrays, key=lambda array: array.bytes),)
    name = _OP_NAME.search(rest)
    group = group_size(rest, devices)
    found.append(Collective(kind, arrays, group, name[1] if name else ""))
  return [c for c in found if c.group > 1]


def group_size(line: str, devices: int) -> int:
  """Number of devices in a group, from the attributes of a collective.

  HLO spells `replica_groups` in three ways: as lists of devices, `{{0,1}}`; as
  the number and the size of the groups, `[1,2]<=[2]`; and as axes of a mesh,
  `mesh['axis_0'=2] {'axis_0'}`. Nothing or `{}` means all devices.
  """
  if "source_target_pairs=" in line:
    return 2
  lists = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
  if lists:
    return len(lists[1].split(","))
  numbers = re.search(r"replica_groups=\[\d+,(\d+)\]<=", line)
  if numbers:
    return int(numbers[1])
  mesh = re.search(r"replica_groups=@?mesh\[([^\]]*)\]\s*\{([^}]*)\}", line)
  if mesh:
    sizes = dict(re.findall(r"'([^']+)'=(\d+)", mesh[1]))
    return math.prod(int(sizes[a]) for a in re.findall(r"'([^']+)'", mesh[2]))
  if re.search(r"replica_groups=(?!\{\})", line):
    raise ValueError(f"replica_groups has an unknown spelling: {line[:200]}")
  return devices


def by_kind(collectives: Iterable[Collective]) -> dict[str, dict[str, Any]]:
  """Number and bytes of the collectives of each kind that occurs."""
  totals: dict[str, dict[str, Any]] = {}
  for c in collectives:
    total = totals.setdefault(c.kind, {"number": 0, "bytes": 0})
    total["number"] += 1
    total["bytes"] += c.bytes
  return totals
