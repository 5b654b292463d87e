"""A data set is prepared once, and appears whole or not at all."""

import hashlib
import json
import os
import shutil
import zipfile

import numpy as np
import pytest

from comen_jax.data import registry, row_store
from comen_jax.data.benchmarks import BENCHMARKS
from comen_jax.data.ingest import archive, catalogue, pictures
from comen_jax.errors import UserError
from data.helpers import (
  ROOT,
  cache_at,
  nothing_half_done,
  rows_of,
  start_python,
)

PACS_CLASSES = (
  "dog", "elephant", "giraffe", "guitar", "horse", "house", "person",
)  # fmt: skip
REAL = ROOT.parent / "shared" / "data"
LIMITS = 50_000, 1_000_000  # Bytes: stop array_record, and the rows.

# Prepares the same data, each time into another cache: twice with a limited
# size of files, then up to a sudden end. TFDS takes seconds to import, so one
# process does all three.
FAILURES = """
import json, os, resource, sys
from comen_jax.data import registry
from comen_jax.data.ingest import pipeline
from comen_jax.errors import UserError

data_dir, root = sys.argv[1:]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in ({limits}):
  os.environ["COMEN_JAX_CACHE"] = f"{{root}}/{{limit}}"
  resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
  try:
    registry.load("digits_dg", data_dir, 32)
  except UserError as e:
    print(json.dumps(str(e)), flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
os.environ["COMEN_JAX_CACHE"] = f"{{root}}/killed"
pipeline._describe = lambda *_: os._exit(9)
registry.load("digits_dg", data_dir, 32)
""".format(limits=", ".join(map(str, LIMITS)))


@pytest.fixture(scope="module")
def prepared(tiny_digits_dg, tmp_path_factory):
  """The tiny digits, prepared once for this file: the cache and the result."""
  with cache_at(tmp_path_factory.mktemp("prepared")) as cache:
    return cache, registry.load_prepared("digits_dg", str(tiny_digits_dg), 32)


@pytest.fixture
def filled(prepared, cache):
  """A copy of that cache for one test."""
  return shutil.copytree(prepared[0], cache)


@pytest.fixture(scope="module")
def failures(tiny_digits_dg, tmp_path_factory):
  """What `FAILURES` left and printed, and its exit code."""
  root = tmp_path_factory.mktemp("failures")
  process = start_python(["-c", FAILURES, str(tiny_digits_dg), str(root)])
  out, err = process.communicate(timeout=120)
  assert not err
  return root, [json.loads(line) for line in out.splitlines()], process


def test_a_second_start_reads_no_image_and_no_tfds(tiny_digits_dg, prepared):
  cache, want = prepared
  code = (
    "import sys\n"
    "from comen_jax.data import registry\n"
    "from comen_jax.data.ingest import archive, pictures\n"
    "archive.Archive.read = pictures.decode = None\n"
    "print(registry.load('digits_dg', sys.argv[1], 32).manifest)\n"
    "for name in ('tensorflow', 'tensorflow_datasets', 'array_record'):\n"
    "  assert name not in sys.modules, name\n"
  )
  second = start_python(
    ["-c", code, str(tiny_digits_dg)], COMEN_JAX_CACHE=str(cache)
  )
  out, err = second.communicate(timeout=60)
  assert not err
  assert out.strip() == want.dataset.manifest


def test_another_size_is_decoded_from_the_prepared_files(
  tiny_digits_dg, prepared, filled
):
  first = prepared[1]
  second = registry.load_prepared("digits_dg", str(tiny_digits_dg), 16)
  assert first.folder.name == second.folder.name
  assert first.rows.name != second.rows.name
  assert os.listdir(filled / "prepared") == [second.folder.name]
  assert second.dataset.images.shape == (640, 16, 16, 3)
  assert first.dataset.manifest == second.dataset.manifest


def test_two_processes_at_once_both_get_whole_data_without_tensorflow(
  tiny_digits_dg, prepared, cache
):
  code = (
    "import sys\n"
    "from comen_jax.data import registry\n"
    "data = registry.load('digits_dg', sys.argv[1], 32)\n"
    "print(len(data.images), data.manifest, data.images.sum())\n"
    "assert 'tensorflow_datasets' in sys.modules\n"
    "assert 'tensorflow' not in sys.modules\n"
  )
  both = [start_python(["-c", code, str(tiny_digits_dg)]) for _ in range(2)]
  dataset = prepared[1].dataset
  want = f"640 {dataset.manifest} {dataset.images.sum()}\n"
  for process in both:
    assert process.communicate(timeout=120) == (want, "")
  for kind in ("prepared", "rows"):
    (only,) = os.listdir(cache / kind)
    assert not only.startswith(".")


def test_a_killed_start_is_not_taken_for_whole(
  tiny_digits_dg, failures, monkeypatch
):
  root, _, process = failures
  assert process.returncode == 9
  monkeypatch.setenv("COMEN_JAX_CACHE", str(root / "killed"))
  (draft,) = os.listdir(root / "killed" / "prepared")
  assert draft.startswith(".")
  dataset = registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert len(dataset.images) == 640
  assert dataset.images.reshape(640, -1).any(axis=1).all()


@pytest.mark.parametrize("limit", LIMITS)
def test_a_full_disk_gives_one_line_and_leaves_nothing(
  tiny_digits_dg, failures, monkeypatch, limit
):
  root, messages, _ = failures
  cache = root / str(limit)
  monkeypatch.setenv("COMEN_JAX_CACHE", str(cache))
  message = messages[LIMITS.index(limit)]
  assert message.startswith("no space is left in")
  assert str(cache) in message
  assert "\n" not in message
  assert nothing_half_done(cache)
  assert len(os.listdir(cache / "prepared")) == (limit > 50_000)
  dataset = registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert len(dataset.images) == 640


def test_the_error_names_a_damaged_prepared_image(
  tiny_digits_dg, prepared, filled
):
  folder = filled / "prepared" / prepared[1].folder.name
  place = folder / "manifest.tsv"
  lines = place.read_text().splitlines()
  lines[0] = lines[0][:-64] + "0" * 64
  place.write_text("\n".join(lines) + "\n")
  name = lines[0].split("\t")[0]
  with pytest.raises(UserError, match=rf"{name} does not match") as error:
    registry.load("digits_dg", str(tiny_digits_dg), 16)
  assert str(folder) in str(error.value)


def test_a_new_version_of_the_decoder_decodes_again(
  tiny_digits_dg, filled, monkeypatch
):
  monkeypatch.setattr(pictures, "VERSION", "next")
  registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert len(os.listdir(filled / "rows")) == 2
  assert len(os.listdir(filled / "prepared")) == 1


def own_rows(name, members, file):
  """Reads (class, domain, split) of each image from the names in the zip."""
  if name == "digits_dg":
    rows = {}
    for member in members:
      _, domain, split, label, file = member.split("/")
      rows[f"{domain}/{split}/{label}/{file}"] = (label, domain, split)
    return rows
  rows = {}
  for domain in ("art_painting", "cartoon", "photo", "sketch"):
    for kind, split in (("train", "train"), ("crossval", "val")):
      text = file.read(f"pacs/splits/{domain}_{kind}_kfold.txt").decode()
      for line in text.splitlines():
        path, label = line.split()
        name = PACS_CLASSES[int(label) - 1]
        assert path.split("/")[:2] == [domain, name]
        rows[path] = (name, domain, split)
  assert {f"pacs/images/{n}" for n in rows} == set(members)
  return rows


@pytest.mark.slow
@pytest.mark.parametrize(
  ("name", "images"), [("digits_dg", 24_000), ("pacs", 3_590)]
)
def test_real_data_are_equal_from_zip_and_folder(name, images, cache, tmp_path):
  place = REAL / f"{name}.zip"
  if not place.exists():
    pytest.skip(f"{REAL} holds no {name}.zip")
  zipped = registry.load_prepared(name, str(REAL), 32)
  with zipfile.ZipFile(place) as file:
    members = [n for n in file.namelist() if n.endswith(("png", "jpg"))]
    want = own_rows(name, members, file)
    file.extractall(tmp_path / "unpacked")
  assert len(zipped.dataset.images) == images
  assert rows_of(zipped) == want
  # No row was left empty.
  assert zipped.dataset.images.reshape(images, -1).any(axis=1).all()
  # The folder gives the same manifest. No second copy as TFDS files: that the
  # copies of a zip and of a folder are equal, tests of small data show.
  spec = BENCHMARKS[name]
  folder = archive.find(str(tmp_path / "unpacked"), spec.archives, "")
  found = catalogue.read(folder, spec.scan, spec.layout)
  manifest = row_store.manifest(found.table, found.checksums)
  assert manifest == (zipped.folder / "manifest.tsv").read_text("utf-8")
  digest = hashlib.sha256(manifest.encode()).hexdigest()
  assert digest == zipped.dataset.manifest
  counts = np.bincount(zipped.dataset.splits)
  expected = (19_200, 4_800) if name == "digits_dg" else (3_230, 360)
  assert tuple(counts) == expected
