"""Digits-DG as folder and zip, and what a damaged copy is answered with."""

import os
import pathlib
import zipfile

import numpy as np
import pytest
from PIL import Image

from comen_jax.data import digits_dg
from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.errors import UserError

REAL = pathlib.Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
  monkeypatch.setenv("COMEN_JAX_CACHE", str(tmp_path / "cache"))
  return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
  """A `data_dir` with a few pictures in the published layout."""
  rng = np.random.default_rng(0)
  for domain in digits_dg.DOMAINS:
    for split in ("train", "val"):
      for label in (0, 7):
        place = tmp_path / "data/digits_dg" / domain / split / str(label)
        place.mkdir(parents=True)
        pixels = rng.integers(0, 256, (10, 12, 3), np.uint8)
        if domain == "mnist":
          Image.fromarray(pixels[..., 0]).save(place / "00000.png")
        else:
          Image.fromarray(pixels).save(place / "00000.jpg")
  return tmp_path / "data"


def _zip(folder, place, compression=zipfile.ZIP_DEFLATED):
  place.mkdir()
  with zipfile.ZipFile(place / "digits_dg.zip", "w", compression) as archive:
    # Not in the order of names: the order of a zip is whoever packed it's.
    for file in sorted(folder.rglob("*.*g"), reverse=True):
      archive.write(file, file.relative_to(folder))
  return place


def _assert_nothing_remains(cache):
  rows = cache / "rows"
  assert not rows.exists() or os.listdir(rows) == []


def test_folder_and_zip_are_the_same_data(folder, tmp_path):
  one = digits_dg.load(str(folder), 8)
  other = digits_dg.load(str(_zip(folder, tmp_path / "zipped")), 8)
  assert one.manifest == other.manifest
  assert list(one.table.names) == list(other.table.names)
  for a, b in zip(one.table[1:], other.table[1:]):
    np.testing.assert_array_equal(a, b)
  np.testing.assert_array_equal(one.images, other.images)


def test_rows_are_what_their_names_say(folder):
  store = digits_dg.load(str(folder), 8)
  assert len(store.table.names) == len(store.images) == 16
  assert list(store.table.names) == sorted(store.table.names)
  for name, label, domain, split in zip(*store.table):
    want = name.split("/")
    split_name = {TRAIN: "train", VAL: "val"}[int(split)]
    assert [digits_dg.DOMAINS[domain], split_name, str(label)] == want[:3]


def test_pictures_are_squeezed_to_the_stored_square_and_grey_ones_to_rgb(
  folder,
):
  store = digits_dg.load(str(folder), 8)
  assert store.images.shape == (16, 8, 8, 3)
  for name, image in zip(store.table.names, store.images):
    with Image.open(folder / "digits_dg" / name) as picture:
      rgb = picture.convert("RGB").resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(image, np.asarray(rgb))
    is_grey = (image == image[..., :1]).all()
    assert is_grey == name.startswith("mnist/")


def test_pictures_of_the_stored_size_keep_their_bytes(folder):
  pixels = np.random.default_rng(1).integers(0, 256, (8, 8, 3), np.uint8)
  place = folder / "digits_dg/syn/train/7/exact.png"
  Image.fromarray(pixels).save(place)
  store = digits_dg.load(str(folder), 8)
  row = list(store.table.names).index("syn/train/7/exact.png")
  np.testing.assert_array_equal(store.images[row], pixels)


def test_the_folder_itself_may_be_given(folder):
  want = digits_dg.load(str(folder), 8)
  assert digits_dg.load(str(folder / "digits_dg"), 8).manifest == want.manifest


def test_a_changed_picture_is_another_manifest(folder):
  before = digits_dg.load(str(folder), 8)
  place = folder / "digits_dg/syn/val/7/00000.jpg"
  Image.new("RGB", (8, 8), "red").save(place)
  after = digits_dg.load(str(folder), 8)
  assert after.manifest != before.manifest
  row = list(after.table.names).index("syn/val/7/00000.jpg")
  assert after.images[row, 4, 4, 0] > 200


def test_other_files_are_no_rows(folder):
  (folder / "digits_dg/readme.txt").write_text("hello")
  (folder / "digits_dg/mnist/train/0/Thumbs.db").write_bytes(b"0")
  Image.new("RGB", (8, 8)).save(folder / "digits_dg/mnist/train/x.png")
  assert len(digits_dg.load(str(folder), 8).images) == 16


def test_suffixes_in_capitals_are_pictures_too(folder):
  place = folder / "digits_dg/mnist/val/7/00000.png"
  place.rename(place.with_name("00000.PNG"))
  assert len(digits_dg.load(str(folder), 8).images) == 16


def test_a_validation_folder_in_capitals_is_never_training(folder):
  (folder / "digits_dg/syn/val").rename(folder / "digits_dg/syn/VAL")
  table = digits_dg.load(str(folder), 8).table
  for name, split in zip(table.names, table.splits):
    assert (split == VAL) == ("/val/" in name.lower())


def test_a_data_dir_without_the_data_is_told_what_belongs_there(tmp_path):
  with pytest.raises(UserError) as error:
    digits_dg.load(str(tmp_path / "nowhere"), 8)
  assert str(tmp_path / "nowhere") in str(error.value)
  assert digits_dg.LAYOUT in str(error.value)
  assert "digits_dg.zip" in str(error.value)
  assert "\n" not in str(error.value)


def test_a_missing_domain_is_named(folder, cache):
  (folder / "digits_dg/svhn").rename(folder / "digits_dg/house_numbers")
  with pytest.raises(UserError, match="svhn") as error:
    digits_dg.load(str(folder), 8)
  assert str(folder / "digits_dg") in str(error.value)
  assert "mnist_m," not in str(error.value).split(":")[0]  # Not the others.
  _assert_nothing_remains(cache)


@pytest.mark.parametrize("content", [b"", b"no picture", "cut"])
def test_a_picture_that_does_not_decode_is_named(folder, cache, content):
  place = folder / "digits_dg/syn/val/7/00000.jpg"
  whole = place.read_bytes()
  place.write_bytes(whole[:-200] if content == "cut" else content)
  with pytest.raises(UserError, match=r"syn/val/7/00000\.jpg"):
    digits_dg.load(str(folder), 8)
  _assert_nothing_remains(cache)
  place.write_bytes(whole)
  assert len(digits_dg.load(str(folder), 8).images) == 16


def test_a_truncated_zip_is_told_from_a_whole_one(folder, tmp_path, cache):
  place = _zip(folder, tmp_path / "zipped") / "digits_dg.zip"
  place.write_bytes(place.read_bytes()[:-300])
  with pytest.raises(UserError, match="not a whole zip") as error:
    digits_dg.load(str(place.parent), 8)
  assert str(place) in str(error.value)
  _assert_nothing_remains(cache)


@pytest.mark.parametrize(
  "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]
)
def test_a_zip_damaged_inside_names_the_picture(
  folder, tmp_path, cache, compression
):
  # Much of it, of one value: something to compress.
  picture = folder / "digits_dg/svhn/train/7/00000.png"
  Image.new("RGB", (64, 64)).save(picture, compress_level=0)
  place = _zip(folder, tmp_path / "zipped", compression) / "digits_dg.zip"
  data = bytearray(place.read_bytes())
  with zipfile.ZipFile(place) as archive:
    info = archive.getinfo("digits_dg/svhn/train/7/00000.png")
  # 30 bytes and the name come before a member's data.
  start = info.header_offset + 30 + len(info.filename)
  data[start : start + 20] = b"\xff" * 20
  place.write_bytes(data)
  with pytest.raises(UserError, match=r"svhn/train/7/00000\.png"):
    digits_dg.load(str(place.parent), 8)
  _assert_nothing_remains(cache)


def test_real_digits_dg_has_as_many_pictures_in_every_cell():
  if not (REAL / "digits_dg.zip").exists():
    pytest.skip(f"{REAL} holds no digits_dg.zip")
  store = digits_dg.load(str(REAL), 32)
  cells = np.zeros((4, 2, 10), int)
  table = store.table
  np.add.at(cells, (table.domains, table.splits, table.labels), 1)
  np.testing.assert_array_equal(cells[:, TRAIN], 480)
  np.testing.assert_array_equal(cells[:, VAL], 120)

  with zipfile.ZipFile(REAL / "digits_dg.zip") as archive:
    members = [n for n in archive.namelist() if n.endswith("g")]
  own = {}
  for member in members:
    _, domain, split, label, file = member.split("/")
    own[f"{domain}/{split}/{label}/{file}"] = (label, domain, split)
  rows = {
    name: (str(label), digits_dg.DOMAINS[domain], ("train", "val")[split])
    for name, label, domain, split in zip(*table)
  }
  assert rows == own
  assert store.images.shape == (24_000, 32, 32, 3)
  # No row was left as it was born.
  assert store.images.reshape(24_000, -1).any(axis=1).all()
