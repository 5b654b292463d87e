"""Reads the analysis.npz of a run, if it is whole."""

import io
import lzma
import pathlib
import struct
import zipfile
import zlib

import numpy as np

from comen_jax.report.damage import Tell

Arrays = dict[str, np.ndarray]

# What a damaged archive makes zipfile and numpy raise.
_DAMAGE = (
  OSError, EOFError, ValueError, TypeError, KeyError, OverflowError,
  NotImplementedError, RuntimeError, SyntaxError, MemoryError, struct.error,
  zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
# Numbers of axes; equal letters are axes of equal length.
_NEEDED = {
  "confusion": "kk",
  "features": "nd",
  "class": "n",
  "domain": "n",
  "class_names": "k",
  "domain_names": "s",
  "target": "",
}
_LATENT = {
  "contingency": "ms",
  "thumbnails": "mthwc",
  "thumbnail_probs": "mt",
  "prototypes_seen": "mk",
  "affinity": "aa",
}


def read(path: pathlib.Path, tell: Tell) -> Arrays | None:
  """Reads all arrays; None, after a line about it, if the file is damaged."""
  try:
    # From memory: numpy leaves a damaged file open.
    with np.load(io.BytesIO(path.read_bytes())) as stored:
      arrays = dict(stored)
    _check(arrays)
  except _DAMAGE as e:
    reason = str(e).partition("\n")[0] or type(e).__name__
    tell(
      f"{path} is damaged ({reason}): its figures are left out; remove the"
      " file, or train the run again"
    )
    return None
  return arrays


def _check(arrays: Arrays) -> None:
  """Raises ValueError if arrays are missing or do not fit together."""
  for name in _NEEDED:
    if name not in arrays:
      raise ValueError(f"it has no {name}")
  sizes: dict[str, int] = {}
  for name, axes in (_NEEDED | _LATENT).items():
    if name not in arrays:
      continue
    shape = arrays[name].shape
    if len(shape) != len(axes):
      raise ValueError(f"{name} has {len(shape)} axes, not {len(axes)}")
    for axis, size in zip(axes, shape):
      if sizes.setdefault(axis, size) != size:
        raise ValueError(f"{name} has the shape {shape}")
  if "a" in sizes and sizes["a"] != sizes["m"] * sizes["k"]:
    raise ValueError(f"affinity has the shape {arrays['affinity'].shape}")
  for name, names in (("class", "class_names"), ("domain", "domain_names")):
    values = arrays[name]
    if not np.isin(values, np.arange(len(arrays[names]))).all():
      raise ValueError(f"{name} has values that {names} does not name")
  if arrays["target"].item() not in arrays["domain_names"]:
    raise ValueError("its target is none of its domains")
