"""Small pictures in any layout, and what became of them."""

import io
import zipfile

import numpy as np
from PIL import Image

from comen_jax.data import row_store


def draw(root, names, seed=0):
  """Writes a picture, each another one, at every name below `root`."""
  rng = np.random.default_rng(seed)
  for name in names:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, 256, (6, 7, 3), np.uint8)).save(place)
  return root


def zipped(folder, place, compression=zipfile.ZIP_DEFLATED):
  """Packs `folder`, with its own name on top, as `place`."""
  place.parent.mkdir(parents=True, exist_ok=True)
  with zipfile.ZipFile(place, "w", compression) as archive:
    # Not in the order of names: the order of a zip is whoever packed it's.
    for file in sorted(folder.rglob("*"), reverse=True):
      archive.write(file, file.relative_to(folder.parent))
  return place


def rows_of(prepared):
  """name -> (class, domain, split) by the manifest of a prepared data set."""
  dataset = prepared.dataset
  text = (prepared.folder / "manifest.tsv").read_text("utf-8")
  rows = {}
  for number, line in enumerate(text.splitlines()):
    name, label, domain, split, checksum = line.split("\t")
    assert int(label) == dataset.labels[number]
    assert int(domain) == dataset.domains[number]
    assert int(split) == dataset.splits[number]
    assert len(checksum) == 64
    rows[name] = (
      dataset.class_names[int(label)],
      dataset.domain_names[int(domain)],
      ("train", "val")[int(split)],
    )
  assert len(rows) == len(dataset.images)
  return rows


def nothing_half_done(cache):
  """No draft, and no rows, are left in the cache."""
  left = [p for p in cache.rglob("*") if p.name.startswith(".")]
  rows = row_store.place("x").parent
  return not left and (not rows.exists() or not list(rows.iterdir()))


def encoded(picture, form="PNG", **options):
  """The picture's bytes."""
  file = io.BytesIO()
  picture.save(file, form, **options)
  return file.getvalue()
