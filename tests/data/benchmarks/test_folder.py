"""A user's own images, in folders."""

import zipfile

import numpy as np
import pytest
from conftest import load_config
from PIL import Image

from comen_jax import metrics
from comen_jax.data import registry
from comen_jax.data.dataset import leave_one_out
from comen_jax.errors import UserError
from data.helpers import draw, nothing_half_done, rows_of, zipped

pytestmark = pytest.mark.usefixtures("cache")


def prepare(root):
  return registry.load_prepared("folder", str(root), 8)


def names(tops, classes=("cat", "dog"), count=5):
  return [
    f"{top}/{name}/{i}.png"
    for top in tops
    for name in classes
    for i in range(count)
  ]


def test_domains_and_classes_are_the_names_of_the_folders(tmp_path):
  root = draw(tmp_path / "mine", names(["b", "a", "c"]))
  prepared = prepare(root)
  dataset = prepared.dataset
  assert (dataset.name, dataset.own) == ("mine", True)
  assert dataset.domain_names == ("a", "b", "c")
  assert dataset.class_names == ("cat", "dog")
  rows = rows_of(prepared)
  assert list(rows) == sorted(names("abc"))
  for name, (label, domain, _) in rows.items():
    assert name.split("/")[:2] == [domain, label]
  drawn = [r[:2] for r in rows.values() if r[2] == "val"]
  assert len(drawn) == len(set(drawn)) == 6
  assert "validation" in dataset.notice


@pytest.mark.parametrize(
  ("data_dir", "name"),
  [
    ("a/mine", "mine"),
    ("a/mine/", "mine"),
    ("a/mine/../other.jpgs", "other.jpgs"),
    ("mine.ZIP", "mine"),
    ("meine Bilder (2)\n\x1b[31m", "meine_Bilder_2_31m"),
    ("写真 ü", "写真_ü"),
    ("..hidden-", "hidden"),
    ("a" * 200, "a" * 40),
    ("PACS", "PACS_folder"),
    ("mini_digits", "mini_digits_folder"),
    ("folder", "folder"),
    ("/", "folder"),
    ("///...", "folder"),
    ("bad\udcff", "bad"),
  ],
)
def test_the_data_set_is_named_after_its_folder(data_dir, name):
  assert registry.shown_name("folder", data_dir) == name


def test_the_name_of_a_relative_folder_is_that_of_its_place(
  tmp_path, monkeypatch
):
  (tmp_path / "photos").mkdir()
  monkeypatch.chdir(tmp_path / "photos")
  assert registry.shown_name("folder", ".") == "photos"


def test_without_a_target_the_error_lists_the_domains(tmp_path):
  dataset = prepare(draw(tmp_path, names("abc"))).dataset
  with pytest.raises(UserError, match=r"target is empty.* a, b, c"):
    leave_one_out(dataset, "")
  split = leave_one_out(dataset, "b")
  assert split.sources == ("a", "c")


def test_without_domains_train_is_the_source_and_test_the_target(tmp_path):
  dataset = prepare(draw(tmp_path, names(["train", "test"]))).dataset
  split = leave_one_out(dataset, "")
  assert (split.sources, split.target) == (("train",), "test")
  assert len(split.train_rows) == 8
  assert len(split.val_rows) == 2
  assert len(split.target_rows) == 10
  assert set(dataset.domains[split.train_rows]) == {0}


def test_without_domains_no_true_domain_is_measured(tmp_path):
  dataset = prepare(draw(tmp_path, names(["train", "test"]))).dataset
  rows = leave_one_out(dataset, "").train_rows
  probs = np.eye(2)[np.arange(len(rows)) % 2]
  found = metrics.latent_domains(
    probs, dataset.domains[rows], dataset.labels[rows]
  )
  assert "nmi_domain" not in found
  assert "nmi_class" in found


def test_a_val_folder_beside_train_and_test_is_the_validation_split(tmp_path):
  prepared = prepare(draw(tmp_path, names(["train", "val", "test"])))
  split = leave_one_out(prepared.dataset, "")
  rows = list(rows_of(prepared))
  assert [rows[r].split("/")[0] for r in split.val_rows] == ["val"] * 10
  assert [rows[r].split("/")[0] for r in split.train_rows] == ["train"] * 10
  assert "drawn" not in prepared.dataset.notice


def test_a_train_folder_among_other_domains_is_a_domain(tmp_path):
  dataset = prepare(draw(tmp_path, names(["train", "test", "photo"]))).dataset
  assert dataset.domain_names == ("photo", "test", "train")
  assert dataset.default_target == ""


def test_names_may_have_spaces_and_letters_of_any_script(tmp_path):
  tops, classes = ["Öl auf Leinwand", "写真 1"], ["Käse 🧀", "пёс", "a'b\"c"]
  root = draw(tmp_path / "meine Bilder ü", names(tops, classes))
  dataset = prepare(root).dataset
  assert dataset.domain_names == tuple(sorted(tops))
  assert dataset.class_names == tuple(sorted(classes))
  assert len(dataset.images) == 30


def test_the_notice_names_a_class_missing_from_one_domain(tmp_path):
  draw(tmp_path, names("ab"))
  draw(tmp_path, names("c", ["cat"]))
  (tmp_path / "c/dog").mkdir()
  dataset = prepare(tmp_path).dataset
  assert "no images of dog in c" in dataset.notice
  assert "\n" not in dataset.notice


def test_the_error_names_a_class_without_images(tmp_path, cache):
  draw(tmp_path, names("ab"))
  (tmp_path / "a/zebra").mkdir()
  (tmp_path / "a/zebra/Thumbs.db").write_text("")
  with pytest.raises(UserError, match="class zebra has no images"):
    prepare(tmp_path)
  assert nothing_half_done(cache)


def test_the_notice_counts_files_that_are_not_images(tmp_path):
  draw(tmp_path, names("ab"))
  (tmp_path / "README.md").write_text("hello")
  (tmp_path / "a/cat/.DS_Store").write_text("")
  (tmp_path / "a/cat/photo.heic").write_text("")
  dataset = prepare(tmp_path).dataset
  assert len(dataset.images) == 20
  assert "1 files" in dataset.notice
  assert "a/cat/photo.heic" in dataset.notice


def test_the_error_names_a_domain_without_images(tmp_path):
  draw(tmp_path, names("ab"))
  (tmp_path / "c/dog").mkdir(parents=True)
  (tmp_path / "notes").mkdir()  # Has no folders inside, so it is no domain.
  with pytest.raises(UserError, match="domain c has no images"):
    prepare(tmp_path)


def test_a_zip_gives_the_same_data_as_its_folder(tmp_path, cache):
  root = draw(tmp_path / "mine", names("abc"))
  (root / "README.md").write_text("hello")
  want = prepare(root)
  place = zipped(root, tmp_path / "zips/mine.zip")  # Has mine/ at the top.
  got = prepare(place)
  assert got.folder != want.folder
  assert got.dataset.manifest == want.dataset.manifest
  assert got.dataset.domain_names == want.dataset.domain_names
  assert got.dataset.notice == want.dataset.notice
  assert rows_of(got) == rows_of(want)
  flat = tmp_path / "zips/flat.zip"
  with zipfile.ZipFile(flat, "w") as file:
    for path in sorted(root.rglob("*")):
      file.write(path, path.relative_to(root))
  assert prepare(flat).dataset.manifest == want.dataset.manifest


def test_all_domains_may_lie_in_one_more_folder(tmp_path):
  draw(tmp_path / "mine/deeper", names(["train", "test"]))
  want = prepare(tmp_path / "mine/deeper").dataset
  got = prepare(tmp_path / "mine").dataset
  assert got.manifest == want.manifest
  assert got.default_target == "test"


def test_a_misplaced_image_in_a_wrapped_folder_is_the_only_one_named(tmp_path):
  draw(tmp_path / "mine/deeper", [*names("ab"), "x.png"])
  with pytest.raises(UserError, match=r"deeper/x\.png is not inside") as error:
    prepare(tmp_path / "mine")
  assert "more such errors" not in str(error.value)


def test_a_cache_inside_the_data_is_not_data(tmp_path, cache):
  assert cache.parent == tmp_path
  draw(tmp_path, names("ab"))
  first = prepare(tmp_path)
  assert prepare(tmp_path).folder == first.folder


BAD = {
  "images in no class": (["a/1.png", "b/2.png"], r"a/1\.png"),
  "images in no folder": ([*names("ab"), "x.png"], r"x\.png"),
  "images too deep": ([*names("ab"), "a/cat/more/1.png"], r"more/1\.png"),
  "one domain": (names("a"), "only one domain, a"),
  "one class": (names("ab", ["cat"]), "only one class, cat"),
  "no images": ([], "holds no images"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_error_says_why_folders_are_no_data_set(tmp_path, cache, case):
  images, message = BAD[case]
  root = draw(tmp_path / "mine", images)
  root.mkdir(exist_ok=True)
  with pytest.raises(UserError, match=message) as error:
    prepare(root)
  assert str(root) in str(error.value)
  assert "\n" not in str(error.value)
  assert nothing_half_done(cache)


def test_the_error_names_a_file_that_is_not_an_image(tmp_path, cache):
  draw(tmp_path, names("ab"))
  (tmp_path / "b/dog/3.png").write_text("no image")
  with pytest.raises(UserError, match=r"b/dog/3\.png does not decode") as error:
    prepare(tmp_path)
  assert str(tmp_path) in str(error.value)
  assert nothing_half_done(cache)
  Image.new("RGB", (3, 3)).save(tmp_path / "b/dog/3.png")
  assert len(prepare(tmp_path).dataset.images) == 20


def test_the_config_has_the_keys_of_the_digits_config():
  keys = lambda config: {
    key: keys(value) if hasattr(value, "keys") else type(value)
    for key, value in config.items()
  }
  assert keys(load_config("folder")) == keys(load_config("digits"))
  assert load_config("folder").is_locked
