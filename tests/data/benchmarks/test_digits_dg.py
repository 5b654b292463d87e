"""Digits-DG as folder and zip, whole and damaged."""

import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image

from comen_jax.data import registry
from comen_jax.data.benchmarks import digits_dg
from comen_jax.data.dataset import VAL
from comen_jax.errors import UserError
from data.helpers import cache_at, draw, nothing_half_done, rows_of, zipped

DOMAINS = ("mnist", "mnist_m", "svhn", "syn")
NAMES = [
  f"{domain}/{split}/{label}/00000.{'png' if domain == 'mnist' else 'jpg'}"
  for domain in DOMAINS
  for split in ("train", "val")
  for label in range(10)
]

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
  """A `data_dir` with a few images in the published layout."""
  data_dir = tmp_path_factory.mktemp("digits")
  root = draw(data_dir / "digits_dg", NAMES)
  for place in root.glob("mnist/*/*/*.png"):
    with Image.open(place) as image:
      grey = image.convert("L")
    grey.save(place)
  return data_dir


@pytest.fixture
def folder(pristine, tmp_path):
  """A copy that a test may change."""
  return shutil.copytree(pristine, tmp_path / "data")


def prepare(folder):
  return registry.load_prepared("digits_dg", str(folder), 8)


@pytest.fixture(scope="module")
def prepared(pristine, tmp_path_factory):
  with cache_at(tmp_path_factory.mktemp("cache")):
    return prepare(pristine)


def load(folder):
  return prepare(folder).dataset


def names(prepared):
  return list(rows_of(prepared))


def test_folder_and_zip_give_the_same_data_and_share_rows(pristine, tmp_path):
  one = prepare(pristine)
  zipped(pristine / "digits_dg", tmp_path / "zipped/digits_dg.zip")
  other = prepare(tmp_path / "zipped")
  assert one.folder != other.folder
  assert rows_of(one) == rows_of(other)
  assert one.dataset.manifest == other.dataset.manifest
  assert one.rows == other.rows


def test_rows_follow_the_names(prepared):
  rows = rows_of(prepared)
  assert list(rows) == sorted(NAMES)
  for name, (label, domain, split) in rows.items():
    assert [domain, split, label] == name.split("/")[:3]


def test_images_become_squares_and_grey_ones_rgb(pristine, prepared):
  assert prepared.dataset.images.shape == (80, 8, 8, 3)
  for name, image in zip(names(prepared), prepared.dataset.images):
    with Image.open(pristine / "digits_dg" / name) as original:
      rgb = original.convert("RGB").resize((8, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(image, np.asarray(rgb))
    is_grey = (image == image[..., :1]).all()
    assert is_grey == name.startswith("mnist/")


def test_images_of_the_stored_size_keep_their_pixels(folder):
  pixels = np.random.default_rng(1).integers(0, 256, (8, 8, 3), np.uint8)
  place = folder / "digits_dg/syn/train/7/exact.png"
  Image.fromarray(pixels).save(place)
  prepared = prepare(folder)
  row = names(prepared).index("syn/train/7/exact.png")
  np.testing.assert_array_equal(prepared.dataset.images[row], pixels)


def test_data_dir_may_be_the_folder_itself(pristine, prepared):
  want = prepared.dataset.manifest
  assert load(pristine / "digits_dg").manifest == want


def test_data_dir_may_be_the_zip_itself(pristine, prepared, tmp_path):
  place = zipped(pristine / "digits_dg", tmp_path / "zipped/Digits_DG.zip")
  assert load(place).manifest == prepared.dataset.manifest


def test_a_changed_image_changes_the_manifest(folder):
  before = load(folder)
  place = folder / "digits_dg/syn/val/7/00000.jpg"
  Image.new("RGB", (8, 8), "red").save(place)
  after = prepare(folder)
  assert after.dataset.manifest != before.manifest
  row = names(after).index("syn/val/7/00000.jpg")
  assert after.dataset.images[row, 4, 4, 0] > 200


def test_other_files_give_no_rows(folder):
  (folder / "digits_dg/readme.txt").write_text("hello")
  (folder / "digits_dg/mnist/train/0/Thumbs.db").write_bytes(b"0")
  (folder / "digits_dg/mnist/train/0/.DS_Store").write_bytes(b"0")
  (folder / "digits_dg/mnist/train/0/._00000.png").write_bytes(b"0")
  (folder / "digits_dg/.hidden").mkdir()
  Image.new("RGB", (8, 8)).save(folder / "digits_dg/mnist/train/x.png")
  assert len(load(folder).images) == 80


def test_suffixes_in_capitals_are_images_too(folder):
  place = folder / "digits_dg/mnist/val/7/00000.png"
  place.rename(place.with_name("00000.PNG"))
  assert len(load(folder).images) == 80


def test_a_validation_folder_in_capitals_is_not_training(folder):
  (folder / "digits_dg/syn/val").rename(folder / "digits_dg/syn/VAL")
  prepared = prepare(folder)
  for name, split in zip(names(prepared), prepared.dataset.splits):
    assert (split == VAL) == ("/val/" in name.lower())


def test_the_error_for_a_wrong_data_dir_says_what_belongs_there(tmp_path):
  with pytest.raises(UserError) as error:
    load(tmp_path / "nowhere")
  assert str(tmp_path / "nowhere") in str(error.value)
  assert digits_dg.BENCHMARK.layout in str(error.value)
  assert "digits_dg.zip" in str(error.value)
  assert "Dassl" in str(error.value)
  assert "\n" not in str(error.value)


def test_the_error_names_a_missing_domain(folder, cache):
  (folder / "digits_dg/svhn").rename(folder / "digits_dg/house_numbers")
  with pytest.raises(UserError, match="svhn") as error:
    load(folder)
  assert str(folder / "digits_dg") in str(error.value)
  assert "mnist_m," not in str(error.value).split(":")[0]  # Not the others.
  assert nothing_half_done(cache)


@pytest.mark.parametrize("content", [b"", b"no image", "cut"])
def test_the_error_names_an_image_that_does_not_decode(folder, cache, content):
  place = folder / "digits_dg/syn/val/7/00000.jpg"
  whole = place.read_bytes()
  place.write_bytes(whole[:-200] if content == "cut" else content)
  with pytest.raises(UserError, match=r"syn/val/7/00000\.jpg"):
    load(folder)
  assert nothing_half_done(cache)
  place.write_bytes(whole)
  assert len(load(folder).images) == 80


def test_a_truncated_zip_is_refused(folder, tmp_path, cache):
  place = zipped(folder / "digits_dg", tmp_path / "zipped/digits_dg.zip")
  place.write_bytes(place.read_bytes()[:-300])
  with pytest.raises(UserError, match="not a complete zip") as error:
    load(place.parent)
  assert str(place) in str(error.value)
  assert nothing_half_done(cache)


@pytest.mark.parametrize(
  "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]
)
def test_the_error_names_an_image_damaged_inside_a_zip(
  folder, tmp_path, cache, compression
):
  # A large image of one value, so that there is something to compress.
  large = folder / "digits_dg/svhn/train/7/00001.png"
  Image.new("RGB", (64, 64)).save(large, compress_level=0)
  place = tmp_path / "zipped/digits_dg.zip"
  zipped(folder / "digits_dg", place, compression)
  data = bytearray(place.read_bytes())
  with zipfile.ZipFile(place) as archive:
    info = archive.getinfo("digits_dg/svhn/train/7/00001.png")
  # 30 bytes and the name come before a member's data.
  start = info.header_offset + 30 + len(info.filename)
  data[start : start + 20] = b"\xff" * 20
  place.write_bytes(data)
  with pytest.raises(UserError, match=r"svhn/train/7/00001\.png"):
    load(place.parent)
  assert nothing_half_done(cache)


@pytest.mark.parametrize("left", ["val", "nothing"])
def test_the_error_names_an_empty_class(folder, cache, left):
  for split in ("train",) if left == "val" else ("train", "val"):
    (folder / f"digits_dg/svhn/{split}/3/00000.jpg").unlink()
  with pytest.raises(UserError, match=r"class 3 .*svhn") as error:
    load(folder)
  assert "\n" not in str(error.value)
  assert nothing_half_done(cache)
