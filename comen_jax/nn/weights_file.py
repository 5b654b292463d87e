"""Finds, reads and converts files of weights.

Training never opens a pickle, which could run code. A `.pth` is a pickle:
`convert` turns it into a `.safetensors`, with torch.
"""

import contextlib
import hashlib
import logging
import pathlib
import zipfile
from collections.abc import Iterator

import numpy as np
import safetensors
import safetensors.numpy

from comen_jax import files
from comen_jax.errors import UserError
from comen_jax.terminal import screen

_SUFFIXES = (".safetensors", ".npz")
_HUB = "hf://"


def resolve(pretrained: str) -> pathlib.Path:
  """Returns the path of the file that `config.pretrained` names.

  Args:
    pretrained: path, or `hf://owner/repository/file`, which is downloaded from
      Hugging Face unless it is in the local cache.
  """
  path = (
    _fetch(pretrained) if pretrained.startswith(_HUB) else _local(pretrained)
  )
  if path.suffix not in _SUFFIXES:
    raise UserError(
      f"pretrained={pretrained}: give a file that ends in"
      f" {' or '.join(_SUFFIXES)}"
    )
  return path


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads all arrays by name, with the dtypes of the file."""
  try:
    if path.suffix == ".npz":
      with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
    return safetensors.numpy.load_file(path)
  except (safetensors.SafetensorError, zipfile.BadZipFile, EOFError) as e:
    raise UserError(
      f"{path} is broken or not a {path.suffix[1:]} file ({e}); get it again"
    ) from e
  except (ValueError, KeyError, TypeError) as e:  # Objects, or bfloat16.
    raise UserError(
      f"{path} does not hold plain arrays ({e}); give a file of float16 or"
      " float32"
    ) from e


def sha256(path: pathlib.Path) -> str:
  """Returns the SHA-256 hash of a file, in hex."""
  with open(path, "rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def convert(source: str, target: str) -> int:
  """Writes the tensors of a torch checkpoint to a .safetensors file.

  Args:
    source: path of the checkpoint, .pth.
    target: path of the file to write, .safetensors.

  Returns:
    The number of tensors.
  """
  if not target.endswith(".safetensors"):
    raise UserError(f"{target}: give a name that ends in .safetensors")
  if not pathlib.Path(source).is_file():
    raise UserError(f"{source} does not exist; give the path of a .pth file")
  try:
    import torch
  except ImportError as e:
    raise UserError(
      "convert needs torch: pip install torch, on any machine; training only"
      " needs the .safetensors file"
    ) from e
  try:
    found = torch.load(source, map_location="cpu", weights_only=True)
  except Exception as e:  # Torch passes on any error of its unpickler.
    raise UserError(
      f"{source} is not a file of tensors ({_one_line(e)}); give a state dict"
    ) from e
  for key in ("state_dict", "model"):
    if isinstance(found, dict) and isinstance(found.get(key), dict):
      found = found[key]
  if not isinstance(found, dict):
    raise UserError(
      f"{source} holds {type(found).__name__}, not named tensors; give a state"
      " dict"
    )
  arrays = {
    name.removeprefix("module."): np.ascontiguousarray(tensor.numpy())
    for name, tensor in found.items()
    if isinstance(tensor, torch.Tensor)
  }
  if not arrays:
    raise UserError(f"{source} holds no named tensors; give a state dict")
  place = pathlib.Path(target)
  place.parent.mkdir(parents=True, exist_ok=True)
  files.write_bytes(place, safetensors.numpy.save(arrays))
  return len(arrays)


def _local(pretrained: str) -> pathlib.Path:
  path = pathlib.Path(pretrained).expanduser()
  if path.suffix in (".pth", ".pt", ".bin"):
    raise UserError(
      f"pretrained={pretrained} is a pickle: convert it once with python -m"
      f" comen_jax.nn.pretrained convert {path}"
      f" {path.with_suffix('.safetensors')}, and give that file"
    )
  if not path.is_file():
    raise UserError(
      f"pretrained={pretrained} does not exist: give the path of a .safetensors"
      " with torchvision's names (docs/weights.md), or --config.pretrained="
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
    f"download https://huggingface.co/{owner}/{repository}/resolve/main/{file}"
    " yourself and give --config.pretrained=<its path>"
  )
  try:
    import huggingface_hub
  except ImportError as e:
    raise UserError(
      f"pretrained={pretrained} needs huggingface_hub: pip install"
      f" huggingface_hub, or {by_hand}"
    ) from e
  names = f"{owner}/{repository}", file
  try:
    # Else each start would ask for a newer version, and wait without a network.
    cached = huggingface_hub.try_to_load_from_cache(*names)
    if isinstance(cached, str):
      return pathlib.Path(cached)
    screen.write(f"fetching {pretrained} from Hugging Face", "stderr")
    with _without_warnings("huggingface_hub"):  # Each retry gives two.
      found = huggingface_hub.hf_hub_download(*names)
  except (OSError, ValueError) as e:  # No network, no such file, no access.
    raise UserError(
      f"pretrained={pretrained} cannot be fetched ({_one_line(e)}): {by_hand}"
    ) from e
  return pathlib.Path(found)


@contextlib.contextmanager
def _without_warnings(library: str) -> Iterator[None]:
  logger = logging.getLogger(library)
  level = logger.level
  logger.setLevel(logging.ERROR)
  try:
    yield
  finally:
    logger.setLevel(level)


def _one_line(error: Exception) -> str:
  """Returns the start of an error's message, without line breaks."""
  return " ".join(str(error).split())[:120]
