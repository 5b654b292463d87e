"""VLCS in its layouts: a 70/30 split, each image once."""

import shutil

import pytest

from comen_jax.data import registry
from comen_jax.errors import UserError
from data.helpers import cache_at, draw, rows_of, zipped

DOMAINS = ("caltech", "labelme", "pascal", "sun")
CLASSES = ("bird", "car", "chair", "dog", "person")
PER_CELL = 10

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def full(tmp_path_factory):
  """Makes <DOMAIN>/full/<number>/*.jpg, ten images of each class."""
  names = [
    f"{domain.upper()}/full/{label}/imgs_{i}.jpg"
    for domain in DOMAINS
    for label in range(5)
    for i in range(PER_CELL)
  ]
  return draw(tmp_path_factory.mktemp("vlcs") / "VLCS", names)


def parts(full, root, overlap):
  """Makes the parts of the release: the same images under other names.

  Seven of ten images are in train, three in test. With `overlap`, crossval
  repeats one image of train, as published.
  """
  for image in full.glob("*/full/*/*.jpg"):
    domain, _, label, file = image.relative_to(full).parts
    number = int(file[5:-4])
    kinds = ["train" if number < 7 else "test"]
    if overlap and number == 0:
      kinds.append("crossval")
    for kind in kinds:
      place = root / domain / kind / label / f"{kind}_{file}"
      place.parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(image, place)
  return root


def prepare(folder):
  return registry.load_prepared("vlcs", str(folder), 8)


@pytest.fixture(scope="module")
def prepared(full, tmp_path_factory):
  with cache_at(tmp_path_factory.mktemp("cache")):
    return prepare(full.parent)


def content(prepared):
  """Reads checksum -> (class, domain, split)."""
  text = (prepared.folder / "manifest.tsv").read_text()
  rows = rows_of(prepared)
  lines = [line.split("\t") for line in text.splitlines()]
  return {line[-1]: rows[line[0]] for line in lines}


def test_thirty_percent_of_every_cell_are_for_validation(prepared):
  rows = list(rows_of(prepared).values())
  assert len(rows) == 4 * 5 * PER_CELL
  for domain in DOMAINS:
    for name in CLASSES:
      assert rows.count((name, domain, "train")) == 7
      assert rows.count((name, domain, "val")) == 3


def test_numbers_are_the_classes_in_the_order_of_their_names(prepared):
  for name, (label, domain, _) in rows_of(prepared).items():
    folder, _, number, _ = name.split("/")
    assert (label, domain) == (CLASSES[int(number)], folder.lower())


def test_every_layout_has_the_same_images_in_the_same_splits(
  full, prepared, tmp_path
):
  want = content(prepared)
  assert len(want) == 4 * 5 * PER_CELL
  # The original release has only parts, Dassl has parts beside full/.
  parts(full, tmp_path / "original/VLCS", overlap=False)
  parts(full, tmp_path / "crossval/VLCS", overlap=True)
  shutil.copytree(full, tmp_path / "dassl/VLCS")
  parts(full, tmp_path / "dassl/VLCS", overlap=True)
  zipped(tmp_path / "dassl/VLCS", tmp_path / "zip/vlcs.zip")
  # DomainBed has named classes and no parts.
  folders = dict(zip(DOMAINS, ("Caltech101", "LabelMe", "VOC2007", "SUN09")))
  for image in full.glob("*/full/*/*.jpg"):
    domain, _, label, file = image.relative_to(full).parts
    place = tmp_path / "domainbed/VLCS" / folders[domain.lower()]
    place = place / CLASSES[int(label)] / file
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(image, place)
  for layout in ("original", "crossval", "dassl", "zip", "domainbed"):
    other = prepare(tmp_path / layout)
    assert len(other.dataset.images) == len(want), layout
    assert content(other) == want, layout


def test_equal_images_of_one_part_are_kept_as_published(full, tmp_path):
  root = shutil.copytree(full, tmp_path / "data/VLCS")
  for i in (1, 2):
    shutil.copy(root / "SUN/full/0/imgs_0.jpg", root / f"SUN/full/0/x_{i}.jpg")
  assert len(prepare(root.parent).dataset.images) == 4 * 5 * PER_CELL + 2


@pytest.mark.parametrize("name", ["VLCS.tar.gz", "vlcs.tar", "VLCS.tgz"])
def test_the_error_for_a_tar_says_to_unpack_it(tmp_path, name):
  (tmp_path / name).write_bytes(b"")
  with pytest.raises(UserError, match=rf"{name} must be unpacked"):
    prepare(tmp_path)
