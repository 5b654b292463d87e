"""Writes a figure as two PNG files, light and dark, if they are out of date.

Each file holds the hash of the data and code that it was drawn from. A figure
is drawn again if that hash changes, whatever the dates of the files.
"""

import hashlib
import pathlib
import re
import time
from collections.abc import Callable, Iterable

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from comen_jax.files import draft
from comen_jax.report import palette
from comen_jax.report.document import Picture
from comen_jax.report.plots.theme import DARK, DPI, LIGHT, Theme
from comen_jax.run import figures

_KEY = "comen_jax"  # Name of the PNG's text field with the hash.


def picture(
  stem: pathlib.Path,
  caption: str,
  sources: Iterable[pathlib.Path],
  make: Callable[[Theme], Figure],
  labels: tuple[str, ...] = (),
) -> Picture:
  """Draws a figure if its files are missing or out of date.

  Args:
    stem: path of the files, `<stem>.png` and `<stem>-dark.png`.
    caption: caption of the figure.
    sources: files that the figure shows.
    make: function that draws it; called only if needed.
    labels: other text that `make` prints.
  """
  key = _key(sources, labels)
  light = stem.with_name(f"{stem.name}.png")
  dark = stem.with_name(f"{stem.name}-dark.png")
  files = ((LIGHT, light), (DARK, dark))
  stale = [(theme, path) for theme, path in files if _key_of(path) != key]
  start = time.monotonic()
  for theme, path in stale:
    with matplotlib.rc_context(theme.rc):
      _save(make(theme), path, key)
  if stale:
    seconds = time.monotonic() - start
    print(f"drew {stem.name} in {seconds:.1f} s", flush=True)
  return Picture(light, caption, dark)


def slug(*names: str) -> str:
  """Joins names of any text to a file name; other names, other file name."""
  text = "-".join(names)
  plain = re.sub(r"[^A-Za-z0-9_-]+", "_", text)
  if plain == text:
    return plain
  return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _key(sources: Iterable[pathlib.Path], labels: tuple[str, ...]) -> str:
  here = pathlib.Path(__file__).parent
  code = [*sorted(here.glob("*.py")), palette.__file__, figures.__file__]
  digest = hashlib.sha256("\0".join(labels).encode())
  for path in (*code, *sources):
    digest.update(hashlib.sha256(pathlib.Path(path).read_bytes()).digest())
  return digest.hexdigest()


def _key_of(path: pathlib.Path) -> str | None:
  if not path.exists():
    return None
  try:
    with Image.open(path) as image:
      return image.info.get(_KEY)
  except OSError:  # Not an image.
    return None


def _save(figure: Figure, path: pathlib.Path, key: str) -> None:
  canvas = FigureCanvasAgg(figure)
  canvas.draw()
  image = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
  # 256 colours take a third of the bytes; even photographs look the same.
  image = image.quantize(256, dither=Image.Dither.NONE)
  about = PngImagePlugin.PngInfo()
  about.add_text(_KEY, key)
  with draft(path) as place:
    image.save(place, "PNG", optimize=True, pnginfo=about, dpi=(DPI, DPI))
