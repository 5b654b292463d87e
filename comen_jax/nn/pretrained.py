"""Torchvision's weights into our backbones.

  python -m comen_jax.nn.pretrained convert resnet18.pth resnet18.safetensors

Our parameters have torchvision's names with "_" for ".". BatchNorm's weights
go to every domain of an SDNorm, which then computes what BatchNorm does: in
evaluation for any p, in training for p that is equal over images.
"""

import argparse
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np
from flax import traverse_util

from comen_jax.errors import UserError
from comen_jax.nn import weights_file

_HEADS = ("fc", "classifier_6")
_OURS = ("domain_predictor", "norm6", "norm7")  # Torchvision has none of them.
_LEAVES = {
  "kernel": "weight",
  "scale": "weight",
  "bias": "bias",
  "mean": "running_mean",
  "var": "running_var",
}


class Report(NamedTuple):
  """Where every array of the backbone, and of the file, went.

  Attributes:
    path: of the file.
    sha256: of the file.
    loaded: names in the file.
    new: ours, as `module/leaf`, that stay as they were born.
    left_over: names in the file that have no place, or were not wanted.
  """

  path: str
  sha256: str
  loaded: tuple[str, ...]
  new: tuple[str, ...]
  left_over: tuple[str, ...]

  def summary(self) -> str:
    """One line."""
    text = (
      f"{len(self.loaded)} arrays of {self.path} (sha256 {self.sha256[:12]});"
      f" new: {_modules(self.new, '/')}"
    )
    if self.left_over:
      text += f"; left over: {_modules(self.left_over, '.')}"
    return text

  def warning(self) -> str:
    """One line if layers that torchvision has start at random, else ""."""
    expected = (*_HEADS, *_OURS)
    missing = [n for n in self.new if n.split("/")[0] not in expected]
    if not missing:
      return ""
    layers = _modules(missing, "/")
    return f"{self.path} does not have {layers}: they start at random"


def load(path: str, variables: Any, load_head: bool = False) -> Any:
  """`variables` with the weights of a file in place of those it was born with.

  Args:
    path: .safetensors or .npz with torchvision's names, float16 or float32.
    variables: {"params", "batch_stats"} of a backbone.
    load_head: load the classifier too; else it stays as it is.
  """
  return load_with_report(path, variables, load_head)[0]


def load_with_report(
  path: str, variables: Any, load_head: bool = False
) -> tuple[Any, Report]:
  """`load`, and where everything went."""
  values, report = read(path, variables, load_head)
  return merge(variables, values), report


def read(
  path: str, variables: Any, load_head: bool = False
) -> tuple[Any, Report]:
  """That part of `variables` which the file has, as float32 numpy; a report.

  Only shapes of `variables` are looked at.
  """
  place = weights_file.resolve(str(path))
  arrays = weights_file.read(place)
  arrays = {
    n: a for n, a in arrays.items() if not n.endswith("num_batches_tracked")
  }
  values, loaded, new = {}, [], []
  for keys, leaf in traverse_util.flatten_dict(variables).items():
    name = _torch_name(keys)
    if name in arrays and (load_head or keys[1] not in _HEADS):
      values[keys] = _convert(place, name, arrays[name], keys[-1], leaf.shape)
      loaded.append(name)
    else:
      new.append("/".join(keys[1:]))
  if not loaded:
    some = ", ".join(sorted(arrays)[:3])
    raise UserError(
      f"{place} has none of this backbone's weights: its {len(arrays)} arrays"
      f" are {some}, ...; give a file with torchvision's names"
    )
  report = Report(
    path=str(place),
    sha256=weights_file.sha256(place),
    loaded=tuple(sorted(loaded)),
    new=tuple(sorted(new)),
    left_over=tuple(sorted(arrays.keys() - set(loaded))),
  )
  return traverse_util.unflatten_dict(values), report


def merge(variables: Any, values: Any) -> Any:
  """`variables`, with `values` wherever there are some."""
  return traverse_util.unflatten_dict(
    traverse_util.flatten_dict(variables, keep_empty_nodes=True)
    | traverse_util.flatten_dict(values)
  )


def _torch_name(keys: tuple[str, ...]) -> str:
  """("params", "layer1_0", "bn1", "scale") -> layer1.0.bn1.weight."""
  modules = ".".join(keys[1:-1]).replace("_", ".")
  return f"{modules}.{_LEAVES.get(keys[-1], keys[-1])}"


def _convert(
  place: pathlib.Path,
  name: str,
  array: np.ndarray,
  leaf: str,
  shape: tuple[int, ...],
) -> np.ndarray:
  """An array of the file, in our layout, float32."""
  if not np.issubdtype(array.dtype, np.floating):
    raise UserError(f"{place}: {name} is {array.dtype}, not a float")
  want = shape
  if leaf == "kernel":  # Ours are [..., in, out], torch's [out, in, ...].
    want = (*shape[:-3:-1], *shape[:-2])
  elif array.ndim == 1 and len(shape) == 2:
    want = shape[1:]
  if array.shape != want:
    hint = "; load_head=False leaves it new" if _is_head(name) else ""
    raise UserError(
      f"{place}: {name} has shape {array.shape}, the backbone's is {want}{hint}"
    )
  array = array.astype(np.float32)
  if not np.isfinite(array).all():
    raise UserError(f"{place}: {name} has values that are not finite")
  if leaf == "kernel":
    axes = (*range(2, array.ndim), 1, 0)
    return np.ascontiguousarray(array.transpose(axes))
  # One BatchNorm becomes all domains of an SDNorm.
  return np.array(np.broadcast_to(array, shape))


def _is_head(name: str) -> bool:
  return name.rsplit(".", 1)[0].replace(".", "_") in _HEADS


def _modules(names, separator: str) -> str:
  """The modules that `names` belong to, each once; "none" if there are none."""
  modules = [name.rsplit(separator, 1)[0] for name in names]
  if separator == "/":
    modules = [m.split("/")[0] for m in modules]
  return ", ".join(dict.fromkeys(modules)) or "none"


def _main() -> None:
  parser = argparse.ArgumentParser(prog="python -m comen_jax.nn.pretrained")
  commands = parser.add_subparsers(dest="command", required=True)
  command = commands.add_parser("convert", help="a .pth to .safetensors")
  command.add_argument("source", help="torch checkpoint, .pth")
  command.add_argument("target", help="file to write, .safetensors")
  arguments = parser.parse_args()
  try:
    count = weights_file.convert(arguments.source, arguments.target)
  except UserError as e:
    print(f"error: {e}", file=sys.stderr)
    sys.exit(2)
  print(f"{arguments.target}: {count} arrays")


if __name__ == "__main__":
  _main()
