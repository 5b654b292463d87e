"""Office-Home in its three layouts, with all 65 classes."""

import pytest

from comen_jax.data import registry
from comen_jax.data.benchmarks import office_home
from comen_jax.errors import UserError
from data.helpers import cache_at, draw, nothing_half_done, rows_of, zipped

CLASSES = office_home.BENCHMARK.classes
DOMAINS = {
  "Art": "art",
  "Clipart": "clipart",
  "Product": "product",
  "Real World": "real_world",
}

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
  names = [
    f"{domain}/{name}/0000{i}.jpg"
    for domain in DOMAINS
    for name in CLASSES
    for i in (1, 2)
  ]
  root = tmp_path_factory.mktemp("office")
  draw(root / "OfficeHomeDataset_10072016", names)
  (root / "OfficeHomeDataset_10072016/ImageInfo.csv").write_text("a,b\n")
  return root


def prepare(folder):
  return registry.load_prepared("office_home", str(folder), 4)


@pytest.fixture(scope="module")
def prepared(original, tmp_path_factory):
  with cache_at(tmp_path_factory.mktemp("cache")):
    return prepare(original)


def test_there_are_65_sorted_classes():
  assert len(set(CLASSES)) == 65
  assert sorted(CLASSES) == list(CLASSES)


def test_the_original_layout_has_no_split_so_one_is_drawn(prepared):
  rows = rows_of(prepared)
  assert len(rows) == 4 * 65 * 2
  for name, (label, domain, _) in rows.items():
    folder, kind, _ = name.split("/")
    assert (label, domain) == (kind, DOMAINS[folder])
  cells = [r[:2] for r in rows.values() if r[2] == "val"]
  assert len(cells) == len(set(cells)) == 4 * 65
  assert "no published split" in prepared.dataset.notice


def test_domainbeds_folder_and_zip_give_the_same_data(
  original, prepared, tmp_path
):
  want = prepared.dataset.manifest
  (tmp_path / "domainbed").mkdir()
  link = tmp_path / "domainbed/office_home"
  link.symlink_to(original / "OfficeHomeDataset_10072016")
  zipped(
    original / "OfficeHomeDataset_10072016", tmp_path / "zip/office_home.zip"
  )
  for layout in ("domainbed", "zip"):
    assert prepare(tmp_path / layout).dataset.manifest == want


def test_dassls_layout_keeps_its_published_split(tmp_path):
  names = [
    f"{domain}/{split}/{name.lower()}/{i}.jpg"
    for domain in DOMAINS.values()
    for split in ("train", "val")
    for i, name in enumerate(CLASSES)
  ]
  draw(tmp_path / "office_home_dg", names)
  prepared = prepare(tmp_path)
  rows = rows_of(prepared)
  assert sorted(names) == list(rows)
  for name, (label, domain, split) in rows.items():
    assert name.split("/")[:2] == [domain, split]
    assert name.split("/")[2] == label.lower()
  assert prepared.dataset.notice == ""


def test_the_error_names_a_folder_that_is_not_a_class(tmp_path, cache):
  draw(tmp_path / "office_home", ["Art/Bed/1.jpg", "Art/Beds/1.jpg"])
  with pytest.raises(UserError, match=r"Art/Beds/1\.jpg.*'Beds'.*65"):
    prepare(tmp_path)
  assert nothing_half_done(cache)


def test_two_layouts_in_one_folder_are_refused(tmp_path):
  draw(tmp_path / "office_home", ["Art/Bed/1.jpg", "Art/train/Bed/1.jpg"])
  with pytest.raises(UserError, match="two layouts"):
    prepare(tmp_path)
