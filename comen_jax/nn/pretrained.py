"""Loads torchvision's weights into our backbones.

  python -m comen_jax.nn.pretrained convert resnet18.pth resnet18.safetensors

Our parameters have torchvision's names with "_" in place of ".". The weights of
a BatchNorm are copied to every domain of an SDNorm. SDNorm then equals that
BatchNorm: in evaluation for any p, in training if all images have the same p.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from flax import traverse_util

from comen_jax.errors import Parser, UserError, command_line
from comen_jax.nn import weights_file
from comen_jax.nn.backbone import STYLE_COPY

Variables = Mapping[str, Any]  # {"params": ..., "batch_stats": ...}

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
  """Lists what became of every array of the backbone and of the file.

  Attributes:
    path: path of the file.
    sha256: hash of the file.
    loaded: names of the file's arrays that were loaded.
    new: our arrays, as `module/leaf`, that keep their initial values.
    unused: names of the file's arrays that have no place or were not wanted.
  """

  path: str
  sha256: str
  loaded: tuple[str, ...]
  new: tuple[str, ...]
  unused: tuple[str, ...]

  def summary(self) -> str:
    """Returns one line for the log."""
    text = (
      f"{len(self.loaded)} arrays from {self.path} (sha256 {self.sha256[:12]});"
      f" newly initialised: {_modules(self.new, '/')}"
    )
    if self.unused:
      text += f"; unused: {_modules(self.unused, '.')}"
    return text

  def warning(self) -> str:
    """Returns one line if the file lacks layers that torchvision has, or ""."""
    expected = (*_HEADS, *_OURS)
    missing = [n for n in self.new if n.split("/")[0] not in expected]
    if not missing:
      return ""
    layers = _modules(missing, "/")
    return f"{self.path} does not have {layers}: they start at random"


def load(path: str, variables: Variables, load_head: bool = False) -> Variables:
  """Returns `variables` with the weights of a file in place of its own.

  Args:
    path: .safetensors or .npz file with torchvision's names, float16 or
      float32.
    variables: {"params", "batch_stats"} of a backbone.
    load_head: whether to load the classifier too.
  """
  return load_with_report(path, variables, load_head)[0]


def load_with_report(
  path: str, variables: Variables, load_head: bool = False
) -> tuple[Variables, Report]:
  """Does what `load` does, and returns a report as well."""
  values, report = read(path, variables, load_head)
  return merge(variables, values), report


def read(
  path: str, variables: Variables, load_head: bool = False
) -> tuple[Variables, Report]:
  """Reads the part of `variables` that the file has, as float32 numpy.

  It uses only the shapes of `variables`.
  """
  place = weights_file.resolve(str(path))
  arrays = weights_file.read(place)
  arrays = {
    n: a for n, a in arrays.items() if not n.endswith("num_batches_tracked")
  }
  values, loaded, new = {}, [], []
  for keys, leaf in traverse_util.flatten_dict(variables).items():
    if keys[1] == STYLE_COPY:
      continue  # `experiment` copies the layer after it was loaded.
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
    unused=tuple(sorted(arrays.keys() - set(loaded))),
  )
  return traverse_util.unflatten_dict(values), report


def merge(variables: Variables, values: Variables) -> Variables:
  """Returns `variables`, replaced by `values` where those have an entry."""
  return traverse_util.unflatten_dict(
    traverse_util.flatten_dict(variables, keep_empty_nodes=True)
    | traverse_util.flatten_dict(values)
  )


def _torch_name(keys: tuple[str, ...]) -> str:
  """Turns ("params", "layer1_0", "bn1", "scale") into layer1.0.bn1.weight."""
  modules = ".".join(keys[1:-1]).replace("_", ".")
  return f"{modules}.{_LEAVES.get(keys[-1], keys[-1])}"


def _convert(
  place: pathlib.Path,
  name: str,
  array: np.ndarray,
  leaf: str,
  shape: tuple[int, ...],
) -> np.ndarray:
  """Brings an array of the file into our layout, as float32.

  Args:
    place: path of the file, for messages.
    name: name of the array in the file.
    array: values in the file.
    leaf: our name of the array, such as "kernel".
    shape: our shape of the array.
  """
  if not np.issubdtype(array.dtype, np.floating):
    raise UserError(
      f"{place}: {name} is {array.dtype}; give a file of float16 or float32"
    )
  want = shape
  if leaf == "kernel":  # Ours are [..., in, out], torch's [out, in, ...].
    want = (*shape[:-3:-1], *shape[:-2])
  elif array.ndim == 1 and len(shape) == 2:
    want = shape[1:]
  if array.shape != want:
    hint = "; load_head=False keeps its initial value" if _is_head(name) else ""
    raise UserError(
      f"{place}: {name} has shape {array.shape}, the backbone's is {want}{hint}"
    )
  array = array.astype(np.float32)
  if not np.isfinite(array).all():
    raise UserError(
      f"{place}: {name} has values that are not finite; give another file"
    )
  if leaf == "kernel":
    axes = (*range(2, array.ndim), 1, 0)
    return np.ascontiguousarray(array.transpose(axes))
  # All domains of an SDNorm start from the same BatchNorm.
  return np.array(np.broadcast_to(array, shape))


def _is_head(name: str) -> bool:
  return name.rsplit(".", 1)[0].replace(".", "_") in _HEADS


def _modules(names: Sequence[str], separator: str) -> str:
  """Lists the modules of `names`, each once; "none" if there are no names."""
  modules = [name.rsplit(separator, 1)[0] for name in names]
  if separator == "/":
    modules = [m.split("/")[0] for m in modules]
  return ", ".join(dict.fromkeys(modules)) or "none"


def _main() -> None:
  parser = Parser(
    prog="python -m comen_jax.nn.pretrained",
    description="Converts weights that were saved with torch.",
  )
  commands = parser.add_subparsers(dest="command", required=True)
  command = commands.add_parser("convert", help="turn a .pth into .safetensors")
  command.add_argument("source", help="torch checkpoint to read, .pth")
  command.add_argument("target", help="file to write, .safetensors")
  arguments = parser.parse_args()
  count = weights_file.convert(arguments.source, arguments.target)
  print(f"{arguments.target}: {count} arrays")


if __name__ == "__main__":
  with command_line("stopped; nothing was written"):
    _main()
