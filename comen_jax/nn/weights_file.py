"""Files of weights: where they are, what they hold. No pickle is ever opened.

A `.pth` is a pickle; `convert` makes a `.safetensors` of it, with torch.
"""

import hashlib
import pathlib
import zipfile

import numpy as np
import safetensors
import safetensors.numpy

from comen_jax.errors import UserError

_SUFFIXES = (".safetensors", ".npz")
_HUB = "hf://"


def resolve(pretrained: str) -> pathlib.Path:
  """The file that `config.pretrained` names, fetched if it is on the hub.

  Args:
    pretrained: a path, or `hf://owner/repository/file`.
  """
  path = (
    _fetch(pretrained) if pretrained.startswith(_HUB) else _local(pretrained)
  )
  if path.suffix not in _SUFFIXES:
    raise UserError(
      f"pretrained={pretrained}: give a file of {' or '.join(_SUFFIXES)}"
    )
  return path


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
  """All arrays by name, as stored."""
  try:
    if path.suffix == ".npz":
      with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
    return safetensors.numpy.load_file(path)
  except (safetensors.SafetensorError, zipfile.BadZipFile, EOFError) as e:
    raise UserError(f"{path} is broken or no {path.suffix[1:]}: {e}") from e
  except (ValueError, KeyError, TypeError) as e:  # Objects, or bfloat16.
    raise UserError(
      f"{path} does not hold plain arrays of float16 or float32: {e}"
    ) from e


def sha256(path: pathlib.Path) -> str:
  with open(path, "rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def convert(source: str, target: str) -> int:
  """A torch checkpoint of tensors -> .safetensors; how many tensors it has."""
  if not target.endswith(".safetensors"):
    raise UserError(f"{target}: give a name that ends in .safetensors")
  if not pathlib.Path(source).is_file():
    raise UserError(f"{source} does not exist")
  try:
    import torch
  except ImportError as e:
    raise UserError(
      "convert needs torch: pip install torch, on any machine; the .safetensors"
      " it makes is all that training needs"
    ) from e
  try:
    found = torch.load(source, map_location="cpu", weights_only=True)
  except Exception as e:  # torch raises whatever its unpickler meets.
    reason = " ".join(str(e).split())[:120]
    raise UserError(f"{source} is not a file of tensors: {reason}") from e
  for key in ("state_dict", "model"):
    if isinstance(found, dict) and isinstance(found.get(key), dict):
      found = found[key]
  if not isinstance(found, dict):
    raise UserError(f"{source} holds {type(found).__name__}, not named tensors")
  arrays = {
    name.removeprefix("module."): np.ascontiguousarray(tensor.numpy())
    for name, tensor in found.items()
    if isinstance(tensor, torch.Tensor)
  }
  if not arrays:
    raise UserError(f"{source} holds no tensors by name")
  place = pathlib.Path(target)
  place.parent.mkdir(parents=True, exist_ok=True)
  draft = place.with_name(f".{place.name}.draft")
  safetensors.numpy.save_file(arrays, draft)
  draft.replace(place)
  return len(arrays)


def _local(pretrained: str) -> pathlib.Path:
  path = pathlib.Path(pretrained).expanduser()
  if path.suffix in (".pth", ".pt", ".bin"):
    raise UserError(
      f"pretrained={pretrained} is a pickle: convert it once by python -m"
      f" comen_jax.nn.pretrained convert {path}"
      f" {path.with_suffix('.safetensors')}, and give that file"
    )
  if not path.is_file():
    raise UserError(
      f"pretrained={pretrained} does not exist: give the path of a .safetensors"
      " with torchvision's names (README, 'Weights'), or --config.pretrained="
      " for a random start"
    )
  return path


def _fetch(pretrained: str) -> pathlib.Path:
  parts = pretrained.removeprefix(_HUB).split("/", 2)
  if len(parts) != 3 or not all(parts):
    raise UserError(
      f"pretrained={pretrained}: give hf://owner/repository/file, such as"
      " hf://timm/resnet18.tv_in1k/model.safetensors"
    )
  owner, repository, file = parts
  by_hand = (
    f"get https://huggingface.co/{owner}/{repository}/resolve/main/{file} by"
    " hand and give --config.pretrained=<its path>"
  )
  try:
    import huggingface_hub
  except ImportError as e:
    raise UserError(
      f"pretrained={pretrained} needs huggingface_hub: pip install"
      f" huggingface_hub, or {by_hand}"
    ) from e
  try:
    found = huggingface_hub.hf_hub_download(f"{owner}/{repository}", file)
  except (OSError, ValueError) as e:  # No network, no such file, no access.
    reason = " ".join(str(e).split())[:120]
    raise UserError(
      f"pretrained={pretrained} cannot be fetched ({reason}): {by_hand}"
    ) from e
  return pathlib.Path(found)
