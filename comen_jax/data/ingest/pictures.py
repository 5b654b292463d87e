"""Decodes image files to squares of uint8 RGB, in parallel, with Pillow.

The result is what a viewer shows: the first frame of an animation, turned as
EXIF says, on a white background where it is transparent. 16-bit pixels are
scaled to 8 bits; grey, palette and CMYK images are converted.
"""

import io
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from PIL import Image, ImageOps

from comen_jax.data.ingest import parallel
from comen_jax.data.ingest.problems import BadFilesError
from comen_jax.errors import UserError

VERSION = 1  # Increase when the same bytes give other pixels.
# The suffix of a file does not matter. Pillow knows more formats, but some of
# them start external programs.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
_ORIENTATION = 0x0112
# Pixels of all threads together: each takes 4 bytes, or 8 if it is converted.
_DECODING = parallel.Budget(1 << 26)
_STRIP = 1 << 22  # Pixels of a transparent image that are converted at a time.
_WAITING = 1 << 28  # Bytes of decoded images that wait to be stored.
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
  """Decodes one image to uint8 [size, size, 3]; squeezes it to a square."""
  try:
    # Opening reads the header; the pixels are decoded within the budget.
    with (
      Image.open(io.BytesIO(data), formats=_FORMATS) as picture,
      _DECODING.hold(picture.width * picture.height),
    ):
      rgb = _rgb(_upright(picture))
      if rgb.size != (size, size):
        rgb = rgb.resize((size, size), Image.Resampling.BILINEAR)
      return np.asarray(rgb)
  except _BAD_PICTURE as e:
    reason = " ".join(str(e).split()) or type(e).__name__
    if isinstance(e, Image.UnidentifiedImageError):
      reason = "unknown format" if data else "the file is empty"
    if isinstance(e, Image.DecompressionBombError):
      limit = 2 * Image.MAX_IMAGE_PIXELS
      reason = f"it has more than {limit:,} pixels: make it smaller"
    raise UserError(f"{name} does not decode as an image: {reason}") from e


def decode_all(
  names: Sequence[str],
  read: Callable[[str], bytes],
  size: int,
  where: str,
) -> Iterator[np.ndarray]:
  """Yields the images in the order of `names`, up to the first bad one.

  The images after it are decoded too, so that one error reports all bad ones.

  Args:
    names: names of the images.
    read: returns the bytes of an image, or raises UserError.
    size: side of the squares, in pixels.
    where: path of the data set, for error messages.
  """
  problems = []
  for image in decode_each(names, read, size, f"{where}: ", "decoding"):
    if isinstance(image, UserError):
      problems.append(str(image))
    elif not problems:
      yield image
  if problems:
    raise BadFilesError(problems)


def undecodable(
  names: Sequence[str], read: Callable[[str], bytes], where: str
) -> list[str]:
  """Returns one line for each image that does not decode.

  Args:
    names: names of the images.
    read: returns the bytes of an image, or raises UserError.
    where: path of the data set, for error messages.
  """
  images = decode_each(names, read, 1, f"{where}: ", "checking")
  return [str(image) for image in images if isinstance(image, UserError)]


def decode_each(
  names: Sequence[str],
  read: Callable[[str], bytes],
  size: int,
  prefix: str,
  label: str,
) -> Iterator[np.ndarray | UserError]:
  """Yields the images in order; yields the error in place of a bad image.

  Args:
    names: names of the images.
    read: returns the bytes of an image, or raises UserError.
    size: side of the squares, in pixels.
    prefix: text before each name in error messages.
    label: label of the progress bar; without one, there is no bar.
  """

  def one(name: str) -> np.ndarray | UserError:
    try:
      return decode(read(name), size, prefix + name)
    except UserError as e:
      return e

  window = max(1, min(1024, _WAITING // (3 * size * size)))
  with warnings.catch_warnings():
    # Pillow warns about large images and odd headers; serious problems raise.
    # Set here and not in `one`, because filters belong to the process.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    yield from parallel.in_order(one, names, label, window)


def _upright(picture: Image.Image) -> Image.Image:
  try:
    orientation = picture.getexif().get(_ORIENTATION, 1)
  except _BAD_PICTURE:  # The EXIF data is broken, the image may be fine.
    orientation = 1
  if orientation in range(2, 9):
    return ImageOps.exif_transpose(picture)
  return picture


def _rgb(picture: Image.Image) -> Image.Image:
  mode = picture.mode
  if mode == "F":
    raise ValueError("its pixels are 32-bit floats: save it with 8 bits")
  if mode.startswith("I"):  # convert() would clip at 255.
    pixels = np.clip(np.asarray(picture), 0, 65535)
    grey = Image.fromarray((pixels // 256).astype(np.uint8))
    return grey.convert("RGB")
  if picture.has_transparency_data:
    return _on_white(picture)
  if mode == "RGB":  # convert() would copy it.
    picture.load()
    return picture
  return picture.convert("RGB")


def _on_white(picture: Image.Image) -> Image.Image:
  """Puts a transparent image on white, strip by strip to save memory."""
  width, height = picture.size
  rgb = Image.new("RGB", picture.size)
  rows = max(1, _STRIP // width)
  for top in range(0, height, rows):
    box = (0, top, width, min(top + rows, height))
    over = picture.crop(box).convert("RGBA")
    white = Image.new("RGBA", over.size, "white")
    rgb.paste(Image.alpha_composite(white, over).convert("RGB"), box)
  return rgb
