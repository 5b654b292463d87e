"""Encoded pictures to squares of uint8 RGB, in parallel.

Pillow alone decodes. A picture is what a viewer shows: the first frame of an
animation, turned as its EXIF says, over white where it is transparent; 16 bits
per pixel are scaled to 8, grey, palette and CMYK are converted.
"""

import io
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from PIL import Image, ImageOps

from comen_jax.data.ingest import parallel
from comen_jax.errors import UserError

VERSION = 1  # Bumped when the same bytes become other pixels.
# Whatever a file's name says. Not all that Pillow knows: some start programs.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
_ORIENTATION = 0x0112
_BAD_PICTURE = (
  OSError,
  ValueError,
  SyntaxError,
  EOFError,
  TypeError,
  IndexError,
  KeyError,
  struct.error,
  OverflowError,
  MemoryError,
  Image.DecompressionBombError,
)


def decode(data: bytes, size: int, name: str) -> np.ndarray:
  """One picture -> uint8 [size, size, 3], the whole of it squeezed."""
  try:
    with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
      rgb = _rgb(_upright(picture))
      if rgb.size != (size, size):
        rgb = rgb.resize((size, size), Image.Resampling.BILINEAR)
      return np.asarray(rgb)
  except _BAD_PICTURE as e:
    reason = " ".join(str(e).split()) or type(e).__name__
    if isinstance(e, Image.UnidentifiedImageError):
      reason = "no known format" if data else "the file is empty"
    raise UserError(f"{name} does not decode as a picture: {reason}") from e


def decode_all(
  names: Sequence[str],
  read: Callable[[str], bytes],
  size: int,
  where: str,
) -> Iterator[np.ndarray]:
  """Pictures in the order of `names`; `where` they are, for messages."""
  for picture in decode_each(names, read, size, f"{where}: ", "decoding"):
    if isinstance(picture, UserError):
      raise picture
    yield picture


def decode_each(
  names: Sequence[str],
  read: Callable[[str], bytes],
  size: int,
  prefix: str,
  label: str,
) -> Iterator[np.ndarray | UserError]:
  """The same, but in place of a bad picture comes what is wrong with it.

  Args:
    names: what `read` takes.
    read: gives a file's bytes, or raises UserError.
    size: of the squares.
    prefix: of names, in messages.
    label: of the progress bar.
  """

  def one(name: str) -> np.ndarray | UserError:
    try:
      return decode(read(name), size, prefix + name)
    except UserError as e:
      return e

  with warnings.catch_warnings():
    # Of large pictures and odd headers; what matters raises. Set here, once:
    # the filters are the whole process's, not a thread's.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    yield from parallel.in_order(one, names, label)


def _upright(picture: Image.Image) -> Image.Image:
  try:
    orientation = picture.getexif().get(_ORIENTATION, 1)
  except _BAD_PICTURE:  # A broken note beside a sound picture.
    orientation = 1
  if orientation in range(2, 9):
    return ImageOps.exif_transpose(picture)
  return picture


def _rgb(picture: Image.Image) -> Image.Image:
  mode = picture.mode
  if mode == "F":
    raise ValueError("32-bit float pixels: save it with 8 bits")
  if mode.startswith("I"):  # convert() would clip at 255.
    pixels = np.clip(np.asarray(picture), 0, 65535)
    grey = Image.fromarray((pixels // 256).astype(np.uint8))
    return grey.convert("RGB")
  if picture.has_transparency_data:
    over = picture.convert("RGBA")
    white = Image.new("RGBA", over.size, "white")
    return Image.alpha_composite(white, over).convert("RGB")
  return picture.convert("RGB")
