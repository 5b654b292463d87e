"""Encoded pictures to squares of uint8 RGB, in parallel."""

import concurrent.futures
import hashlib
import io
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from PIL import Image
from tqdm import tqdm

from comen_jax.errors import UserError


def decode(data: bytes, size: int, name: str) -> np.ndarray:
  """One picture -> uint8 [size, size, 3], the whole of it squeezed."""
  try:
    with Image.open(io.BytesIO(data)) as picture:
      rgb = picture.convert("RGB")
      if rgb.size != (size, size):
        rgb = rgb.resize((size, size), Image.Resampling.BILINEAR)
      return np.asarray(rgb)
  except (OSError, ValueError, SyntaxError) as e:
    raise UserError(f"{name} does not decode as a picture: {e}") from e


def decode_all(
  names: Sequence[str],
  read: Callable[[str], bytes],
  size: int,
  checksums: list[str],
  label: str,
) -> Iterator[np.ndarray]:
  """Pictures in the order of `names`; fills `checksums` (sha256) on the way."""

  def one(name: str) -> tuple[np.ndarray, str]:
    data = read(name)
    return decode(data, size, name), hashlib.sha256(data).hexdigest()

  # No bar where there is no terminal: it would print a line per refresh.
  bar = tqdm(
    total=len(names), desc=f"decoding {label}", unit="img", disable=None
  )
  with bar, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for start in range(0, len(names), 1024):  # Bounds what waits in memory.
      for picture, checksum in pool.map(one, names[start : start + 1024]):
        checksums.append(checksum)
        bar.update()
        yield picture
