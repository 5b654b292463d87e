"""PACS in its layouts, and wrong lists."""

import shutil

import pytest

from comen_jax.data import registry
from comen_jax.errors import UserError
from data.helpers import draw, nothing_half_done, rows_of, zipped

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CLASSES = (
  "dog", "elephant", "giraffe", "guitar", "horse", "house", "person",
)  # fmt: skip
NAMES = [
  f"{domain}/{name}/{i}.png"
  for domain in DOMAINS
  for name in CLASSES
  for i in range(3)
]

pytestmark = pytest.mark.usefixtures("cache")


def write_lists(root):
  root.mkdir(parents=True, exist_ok=True)
  for domain in DOMAINS:
    lines = {"train": [], "crossval": [], "test": []}
    for name in NAMES:
      folder, kind, file = name.split("/")
      if folder == domain:
        line = f"{name} {CLASSES.index(kind) + 1}\n"
        # 2.png, the last one, is for validation.
        lines["crossval" if file == "2.png" else "train"].append(line)
        lines["test"].append(line)
    for split, text in lines.items():
      (root / f"{domain}_{split}_kfold.txt").write_text("".join(text))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
  """Dassl's layout."""
  root = tmp_path_factory.mktemp("pacs")
  draw(root / "pacs/images", NAMES)
  write_lists(root / "pacs/splits")
  return root


@pytest.fixture
def folder(pristine, tmp_path):
  return shutil.copytree(pristine, tmp_path / "data")


def prepare(folder):
  return registry.load_prepared("pacs", str(folder), 8)


def edit(folder, name, old, new):
  place = folder / "pacs/splits" / name
  text = place.read_text()
  assert old in text
  place.write_text(text.replace(old, new, 1))


def test_rows_follow_names_and_lists(folder):
  prepared = prepare(folder)
  rows = rows_of(prepared)
  assert list(rows) == sorted(NAMES)
  for name, row in rows.items():
    domain, label, file = name.split("/")
    assert row == (label, domain, "val" if file == "2.png" else "train")
  assert prepared.dataset.notice == ""


def test_all_layouts_give_the_same_data(folder, tmp_path):
  want = prepare(folder).dataset.manifest
  zipped(folder / "pacs", tmp_path / "zip/PACS.zip")
  # The original release: kfold/, and the lists beside the images.
  shutil.copytree(folder / "pacs/images", tmp_path / "original/PACS/kfold")
  write_lists(tmp_path / "original/PACS/kfold")
  # The lists may also be in a folder with any name.
  shutil.copytree(folder / "pacs/images", tmp_path / "other/PACS")
  write_lists(tmp_path / "other/PACS/Train val splits and h5py files pre-read")
  for layout in ("zip", "original", "other"):
    assert prepare(tmp_path / layout).dataset.manifest == want, layout


def test_without_lists_a_split_is_drawn_with_a_notice(folder, tmp_path):
  shutil.copytree(folder / "pacs/images", tmp_path / "domainbed/PACS")
  prepared = prepare(tmp_path / "domainbed")
  assert "kfold" in prepared.dataset.notice
  assert "\n" not in prepared.dataset.notice
  rows = rows_of(prepared)
  assert list(rows) == sorted(NAMES)
  drawn = [row[:2] for row in rows.values() if row[2] == "val"]
  assert len(drawn) == len(set(drawn)) == 28  # One of each class and domain.


BAD = {
  "label 0 is out of range": ("photo/dog/0.png 1", "photo/dog/0.png 0"),
  "label 8 is out of range": ("photo/dog/0.png 1", "photo/dog/0.png 8"),
  "label of another class": ("photo/dog/0.png 1", "photo/dog/0.png 2"),
  "no label": ("photo/dog/0.png 1", "photo/dog/0.png"),
  "a missing file": ("photo/dog/0.png 1", "photo/dog/9.png 1"),
  "an unknown class": ("photo/dog/0.png 1", "photo/cat/0.png 1"),
  "another domain": ("photo/dog/0.png 1", "sketch/dog/0.png 1"),
  "a file named twice": ("photo/dog/0.png 1", "photo/dog/1.png 1"),
  "a validation file": ("photo/dog/0.png 1", "photo/dog/2.png 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_error_names_a_wrong_line_of_a_list(folder, cache, case):
  old, new = BAD[case]
  edit(folder, "photo_train_kfold.txt", old, new)
  with pytest.raises(UserError, match=r"photo_\w+_kfold.txt:\d") as error:
    prepare(folder)
  assert "\n" not in str(error.value)
  assert str(folder / "pacs") in str(error.value)
  assert nothing_half_done(cache)


def test_labels_that_start_at_0_are_refused(folder):
  place = folder / "pacs/splits/photo_train_kfold.txt"
  lines = place.read_text().splitlines()
  text = "\n".join(f"{line[:-1]}{int(line[-1]) - 1}" for line in lines)
  place.write_text(text)
  with pytest.raises(UserError, match="labels of PACS are 1 to 7"):
    prepare(folder)


def test_the_error_names_a_missing_list(folder):
  (folder / "pacs/splits/cartoon_crossval_kfold.txt").unlink()
  with pytest.raises(UserError, match=r"no cartoon_crossval_kfold\.txt"):
    prepare(folder)


def test_images_in_no_list_are_left_out_with_a_notice(folder):
  draw(folder / "pacs/images", ["photo/dog/new.png"])
  prepared = prepare(folder)
  assert len(prepared.dataset.images) == len(NAMES)
  assert "photo/dog/new.png" in prepared.dataset.notice


def test_two_copies_of_an_image_are_refused(folder):
  draw(folder / "pacs/copy", ["photo/dog/0.png"])
  with pytest.raises(UserError, match=r"photo/dog/0\.png twice"):
    prepare(folder)


def test_the_image_that_dassl_skips_is_used_if_it_decodes(folder):
  name = "sketch/dog/n02103406_4068-1.png"
  draw(folder / "pacs/images", [name])
  edit(folder, "sketch_train_kfold.txt", "", f"{name} 1\n")
  prepared = prepare(folder)
  assert name in rows_of(prepared)
  assert name in prepared.dataset.notice
  (folder / "pacs/images" / name).write_bytes(b"damaged")
  prepared = prepare(folder)
  assert name not in rows_of(prepared)
  assert "left out" in prepared.dataset.notice


def test_the_error_names_a_class_missing_from_one_domain(folder, cache):
  shutil.rmtree(folder / "pacs/images/photo/horse")
  shutil.rmtree(folder / "pacs/splits")
  with pytest.raises(UserError, match="class horse in domain photo"):
    prepare(folder)
  assert nothing_half_done(cache)
