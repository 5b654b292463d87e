"""Writes a figure's panels as PNG files, light and dark, if out of date.

Each file holds the hash of the data and code that it was drawn from. A figure
is drawn again if that hash changes, whatever the dates of the files.
"""

import hashlib
import pathlib
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from comen_jax.files import draft
from comen_jax.report import palette
from comen_jax.report.document import Panel, Picture
from comen_jax.report.plots.theme import DARK, DPI, LIGHT, Theme
from comen_jax.run import figures

_KEY = "comen_jax"  # Name of the PNG's text field with the hash.

Make = Callable[[Theme], Figure]


def picture(
  stem: pathlib.Path,
  caption: str,
  sources: Iterable[pathlib.Path],
  panels: Mapping[str, Make],
  labels: tuple[str, ...] = (),
) -> Picture:
  """Draws the panels of a figure whose files are missing or out of date.

  Args:
    stem: path of the files, `<stem>-<name>.png` and `<stem>-<name>-dark.png`.
    caption: caption of the figure.
    sources: files that the figure shows.
    panels: functions that draw the panels, by name; called only if needed.
    labels: other text and values that the panels show.
  """
  key = _key(sources, labels)
  start = time.monotonic()
  drawn, is_stale = [], False
  for name, make in panels.items():
    light = stem.with_name(f"{stem.name}-{slug(name)}.png")
    dark = light.with_name(f"{light.stem}-dark.png")
    drawn.append(Panel(light, dark))
    for theme, path in ((LIGHT, light), (DARK, dark)):
      if _key_of(path) != key:
        is_stale = True
        with matplotlib.rc_context(theme.rc):
          _save(make(theme), path, key)
  if is_stale:
    seconds = time.monotonic() - start
    print(f"drew {stem.name} in {seconds:.1f} s", flush=True)
  return Picture(tuple(drawn), caption)


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
  with warnings.catch_warnings():
    # A class may be named in letters that the font lacks; it shows boxes.
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")
    canvas.draw()
  image = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
  # 256 colours take a third of the bytes; even photographs look the same.
  image = image.quantize(256, dither=Image.Dither.NONE)
  about = PngImagePlugin.PngInfo()
  about.add_text(_KEY, key)
  with draft(path) as place:
    image.save(place, "PNG", optimize=True, pnginfo=about, dpi=(DPI, DPI))
