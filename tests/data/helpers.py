"""Small images in any layout, small data sets, and other processes."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from comen_jax.data import row_store
from comen_jax.data.dataset import Dataset

ROOT = pathlib.Path(__file__).parents[2]


def draw(root, names, seed=0):
  """Writes a different small image for every name below `root`."""
  rng = np.random.default_rng(seed)
  for name in names:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, 256, (6, 7, 3), np.uint8)).save(place)
  return root


def zipped(folder, place, compression=zipfile.ZIP_DEFLATED):
  """Packs `folder`, with its own name at the top, as `place`."""
  place.parent.mkdir(parents=True, exist_ok=True)
  with zipfile.ZipFile(place, "w", compression) as archive:
    # Reversed: the order of the files in a zip must not matter.
    for file in sorted(folder.rglob("*"), reverse=True):
      archive.write(file, file.relative_to(folder.parent))
  return place


def rows_of(prepared):
  """Reads name -> (class, domain, split) from the manifest, and checks it."""
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


@contextlib.contextmanager
def cache_at(place):
  """Uses another cache, for a fixture that several tests share."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("COMEN_JAX_CACHE", str(place))
    yield place


def nothing_half_done(cache):
  """Whether the cache holds no draft and no rows."""
  left = [p for p in cache.rglob("*") if p.name.startswith(".")]
  rows = row_store.place("x").parent
  return not left and (not rows.exists() or not list(rows.iterdir()))


def encoded(image, form="PNG", **options):
  """Returns the bytes of the image file."""
  file = io.BytesIO()
  image.save(file, form, **options)
  return file.getvalue()


def tiny_dataset(
  labels, domains, splits, images=None, class_names=None, domain_names=None
):
  """A data set in memory; its images are black if none are given."""
  count = len(labels)
  if images is None:
    images = np.zeros((count, 2, 2, 3), np.uint8)
  domain_names = domain_names or ("only",)
  return Dataset(
    name="tiny",
    images=images,
    labels=np.asarray(labels, np.int32),
    domains=np.asarray(domains, np.int32),
    splits=np.asarray(splits, np.uint8),
    class_names=class_names or tuple("0123456789"),
    domain_names=domain_names,
    manifest="",
    default_target=domain_names[-1],
  )


def start_python(arguments, **environment):
  """Starts Python in the repository, with warnings as errors."""
  return subprocess.Popen(
    [sys.executable, "-W", "error", *arguments],
    cwd=ROOT,
    env=os.environ | environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
