"""Prepared once, whole or not at all, whoever else is doing the same."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from comen_jax.data import registry
from comen_jax.data.ingest import pictures
from comen_jax.errors import UserError
from data.helpers import nothing_half_done, rows_of

ROOT = pathlib.Path(__file__).parents[3]
PACS_CLASSES = (
  "dog", "elephant", "giraffe", "guitar", "horse", "house", "person",
)  # fmt: skip
REAL = ROOT.parent / "shared" / "data"


def python(code, cache):
  """Starts Python with that code and cache."""
  return subprocess.Popen(
    [sys.executable, "-W", "error", "-c", code],
    cwd=ROOT,
    env={**os.environ, "COMEN_JAX_CACHE": str(cache)},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def load(data_dir):
  return f"registry.load('digits_dg', {str(data_dir)!r}, 32)"


def test_a_second_start_reads_no_picture_and_no_tfds(tiny_digits_dg, cache):
  want = registry.load_prepared("digits_dg", str(tiny_digits_dg), 32)
  code = (
    "import sys\n"
    "from comen_jax.data import registry\n"
    "from comen_jax.data.ingest import archive, pictures\n"
    "archive.Archive.read = pictures.decode = None\n"
    f"print({load(tiny_digits_dg)}.manifest)\n"
    "for name in ('tensorflow', 'tensorflow_datasets', 'array_record'):\n"
    "  assert name not in sys.modules, name\n"
  )
  out, err = python(code, cache).communicate(timeout=60)
  assert not err
  assert out.strip() == want.dataset.manifest


def test_preparing_needs_no_tensorflow(tiny_digits_dg, cache):
  code = (
    "import sys\n"
    "from comen_jax.data import registry\n"
    f"print(len({load(tiny_digits_dg)}.images))\n"
    "assert 'tensorflow_datasets' in sys.modules\n"
    "assert 'tensorflow' not in sys.modules\n"
  )
  out, err = python(code, cache).communicate(timeout=60)
  assert (out.strip(), err) == ("640", "")


def test_another_size_is_decoded_from_what_is_prepared(
  tiny_digits_dg, cache, tmp_path
):
  copy = shutil.copytree(tiny_digits_dg, tmp_path / "copy")
  first = registry.load_prepared("digits_dg", str(copy), 32)
  second = registry.load_prepared("digits_dg", str(copy), 16)
  assert first.folder == second.folder
  assert first.rows != second.rows
  assert second.dataset.images.shape == (640, 16, 16, 3)
  assert first.dataset.manifest == second.dataset.manifest


def test_two_processes_at_once_both_get_whole_data(tiny_digits_dg, cache):
  code = (
    "from comen_jax.data import registry\n"
    f"d = {load(tiny_digits_dg)}\n"
    "print(d.manifest, d.images.sum(), d.labels.sum())\n"
  )
  both = [python(code, cache) for _ in range(2)]
  (one, err_one), (other, err_other) = (
    p.communicate(timeout=120) for p in both
  )
  assert (err_one, err_other) == ("", "")
  assert one == other
  for kind in ("prepared", "rows"):
    (only,) = os.listdir(cache / kind)
    assert not only.startswith(".")


def test_a_start_that_was_killed_is_not_taken_for_whole(tiny_digits_dg, cache):
  code = (
    "import os\n"
    "from comen_jax.data import registry\n"
    "from comen_jax.data.ingest import pipeline\n"
    "pipeline._describe = lambda *_: os._exit(9)\n"
    f"{load(tiny_digits_dg)}\n"
  )
  process = python(code, cache)
  process.communicate(timeout=60)
  assert process.returncode == 9
  dataset = registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert len(dataset.images) == 640
  assert dataset.images.reshape(640, -1).any(axis=1).all()


# The first limit stops array_record, the second the rows.
@pytest.mark.parametrize("limit", [50_000, 1_000_000])
def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(
  tiny_digits_dg, cache, limit
):
  code = (
    "import resource\n"
    "from comen_jax.data import registry\n"
    "from comen_jax.errors import UserError\n"
    f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    "try:\n"
    f"  {load(tiny_digits_dg)}\n"
    "except UserError as e:\n"
    "  print(e)\n"
  )
  out, err = python(code, cache).communicate(timeout=60)
  assert not err
  assert out.startswith("no space is left in")
  assert str(cache) in out
  assert out.count("\n") == 1
  assert nothing_half_done(cache)
  assert len(os.listdir(cache / "prepared")) == (limit > 50_000)
  assert len(registry.load("digits_dg", str(tiny_digits_dg), 32).images) == 640


def test_damaged_prepared_data_are_told_of(tiny_digits_dg, cache):
  found = registry.load_prepared("digits_dg", str(tiny_digits_dg), 32)
  place = found.folder / "manifest.tsv"
  lines = place.read_text().splitlines()
  lines[0] = lines[0][:-64] + "0" * 64
  place.write_text("\n".join(lines) + "\n")
  name = lines[0].split("\t")[0]
  with pytest.raises(UserError, match=rf"{name} does not match") as error:
    registry.load("digits_dg", str(tiny_digits_dg), 16)
  assert str(found.folder) in str(error.value)


def test_a_change_of_how_pictures_are_decoded_decodes_again(
  tiny_digits_dg, cache, monkeypatch
):
  registry.load("digits_dg", str(tiny_digits_dg), 32)
  monkeypatch.setattr(pictures, "VERSION", "next")
  registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert len(os.listdir(cache / "rows")) == 2
  assert len(os.listdir(cache / "prepared")) == 1


def own_rows(name, members, archive):
  """(class, domain, split) of each picture by the zip's own names."""
  if name == "digits_dg":
    rows = {}
    for member in members:
      _, domain, split, label, file = member.split("/")
      rows[f"{domain}/{split}/{label}/{file}"] = (label, domain, split)
    return rows
  rows = {}
  for domain in ("art_painting", "cartoon", "photo", "sketch"):
    for kind, split in (("train", "train"), ("crossval", "val")):
      text = archive.read(f"pacs/splits/{domain}_{kind}_kfold.txt").decode()
      for line in text.splitlines():
        picture, label = line.split()
        name = PACS_CLASSES[int(label) - 1]
        assert picture.split("/")[:2] == [domain, name]
        rows[picture] = (name, domain, split)
  assert {f"pacs/images/{n}" for n in rows} == set(members)
  return rows


@pytest.mark.parametrize(
  ("name", "images"), [("digits_dg", 24_000), ("pacs", 3_590)]
)
def test_real_data_are_the_same_from_zip_and_folder(
  name, images, cache, tmp_path
):
  place = REAL / f"{name}.zip"
  if not place.exists():
    pytest.skip(f"{REAL} holds no {name}.zip")
  zipped = registry.load_prepared(name, str(REAL), 32)
  with zipfile.ZipFile(place) as archive:
    members = [n for n in archive.namelist() if n.endswith(("png", "jpg"))]
    want = own_rows(name, members, archive)
    archive.extractall(tmp_path / "unpacked")
  assert len(zipped.dataset.images) == images
  assert rows_of(zipped) == want
  # No row was left as it was born.
  assert zipped.dataset.images.reshape(images, -1).any(axis=1).all()
  folder = registry.load_prepared(name, str(tmp_path / "unpacked"), 32)
  assert folder.folder != zipped.folder
  one, other = (
    (p.folder / "manifest.tsv").read_bytes() for p in (zipped, folder)
  )
  assert one == other
  assert folder.dataset.manifest == zipped.dataset.manifest
  counts = np.bincount(zipped.dataset.splits)
  expected = (19_200, 4_800) if name == "digits_dg" else (3_230, 360)
  assert tuple(counts) == expected
