"""Folders and zips, whole and damaged."""

import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from comen_jax.data.ingest import archive
from comen_jax.errors import UserError


def folder(root, names):
  for name in names:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(name)
  return root


def packed(place, names):
  with zipfile.ZipFile(place, "w") as file:
    for name in names:
      file.writestr(name, name)
  return place


def test_folder_and_zip_show_the_same_files(tmp_path):
  names = ["b/ü 1.png", "a.png", "b/c/d.txt"]
  one = archive.Archive(folder(tmp_path / "x", names))
  other = archive.Archive(packed(tmp_path / "x.zip", names))
  for source in (one, other):
    assert source.names == sorted(names)
    assert source.folders == {"b", "b/c"}
    assert source.pictures == ["a.png", "b/ü 1.png"]
    assert all(source.read(n).decode() == n for n in names)


def test_hidden_files_are_left_out(tmp_path):
  names = ["a.png", ".a.png", ".git/b.png", "__MACOSX/a.png", "b/._c.png"]
  one = archive.Archive(folder(tmp_path / "x", names))
  other = archive.Archive(packed(tmp_path / "x.zip", names))
  assert one.names == other.names == ["a.png"]


def test_the_fingerprint_changes_with_every_file(tmp_path):
  root = folder(tmp_path / "x", ["a.png", "b/c.png"])
  prints = [archive.Archive(root).fingerprint]
  assert archive.Archive(root).fingerprint == prints[0]
  (root / "b/c.png").write_text("other")
  prints.append(archive.Archive(root).fingerprint)
  os.utime(root / "a.png", (1, 1))
  prints.append(archive.Archive(root).fingerprint)
  (root / "d.png").write_text("")
  prints.append(archive.Archive(root).fingerprint)
  (root / "d.png").rename(root / "e.png")
  prints.append(archive.Archive(root).fingerprint)
  assert len(set(prints)) == 5


@pytest.mark.parametrize(
  "name", ["../x.png", "a/../../x.png", "/etc/x.png", "C:/x.png", "..\\x.png"]
)
def test_an_entry_that_points_outside_is_refused(tmp_path, name):
  place = packed(tmp_path / "x.zip", ["a.png", name])
  with pytest.raises(UserError, match="points outside") as error:
    archive.Archive(place)
  assert repr(name) in str(error.value)
  assert str(place) in str(error.value)


def test_names_packed_on_windows_or_without_utf_8_flag_are_read(tmp_path):
  place = packed(tmp_path / "x.zip", ["a\\b.png", "Käse.png"])
  data = bytearray(place.read_bytes())
  entry = data.rindex(b"PK\1\2")  # In the directory at the end of the zip.
  assert data[entry + 9] == 8  # The UTF-8 flag.
  data[entry + 9] = 0
  place.write_bytes(data)
  assert archive.Archive(place).names == ["Käse.png", "a/b.png"]


def test_links_are_followed_but_not_in_circles(tmp_path):
  root = folder(tmp_path / "x", ["a/1.png"])
  folder(tmp_path / "elsewhere", ["2.png"])
  (root / "b").symlink_to(tmp_path / "elsewhere")
  (root / "a/up").symlink_to(root)
  (root / "a/self").symlink_to(root / "a")
  assert archive.Archive(root).names == ["a/1.png", "b/2.png"]


@pytest.mark.parametrize("target", ["nowhere.png", "1.png"])
def test_a_link_that_leads_nowhere_is_a_problem(tmp_path, target):
  root = folder(tmp_path / "x", ["2.png"])
  before = archive.Archive(root)
  (root / "1.png").symlink_to(target)  # The second link leads to itself.
  source = archive.Archive(root)
  assert source.names == ["2.png"]
  (problem,) = source.problems
  assert f"{root}/1.png cannot be read" in problem
  # Otherwise data that was prepared without the link would be used.
  assert source.fingerprint != before.fingerprint


@pytest.mark.parametrize("name", ["a\nb.png", "a\tb.png", b"\xff.png"])
def test_names_that_a_manifest_cannot_hold_are_problems(tmp_path, name):
  (tmp_path / "x").mkdir()
  (tmp_path / "x" / os.fsdecode(name)).write_text("")
  source = archive.Archive(tmp_path / "x")
  assert source.names == []
  (problem,) = source.problems
  assert "rename it" in problem
  assert problem.isprintable()


def test_a_link_with_an_odd_name_is_shown_on_one_line(tmp_path):
  (tmp_path / "x").mkdir()
  (tmp_path / "x/a\nb.png").symlink_to("nowhere")
  (problem,) = archive.Archive(tmp_path / "x").problems
  assert problem.isprintable()


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_the_error_names_an_unreadable_file_or_folder(tmp_path):
  root = folder(tmp_path / "x", ["a/1.png", "b/2.png"])
  (root / "a/1.png").chmod(0)
  with pytest.raises(UserError, match=r"a/1\.png cannot be read"):
    archive.Archive(root).read("a/1.png")
  (root / "b").chmod(0)
  (problem,) = archive.Archive(root).problems
  assert "x/b cannot be read" in problem
  (root / "b").chmod(0o700)


def test_the_error_names_a_file_that_was_removed(tmp_path):
  root = folder(tmp_path / "x", ["a/1.png"])
  source = archive.Archive(root)
  (root / "a/1.png").unlink()
  with pytest.raises(UserError, match=r"a/1\.png cannot be read: No such"):
    source.read("a/1.png")


def test_the_error_names_a_file_that_is_not_a_zip(tmp_path):
  (tmp_path / "x.zip").write_text("<html>Quota exceeded</html>")
  with pytest.raises(UserError, match=r"x\.zip is not a complete zip"):
    archive.find(str(tmp_path), ["x"], "")


def test_a_zip_with_any_byte_changed_is_read_or_named_in_the_error(tmp_path):
  whole = packed(tmp_path / "x.zip", ["ü/1.png", "b/2.png"]).read_bytes()
  (tmp_path / "x.zip").unlink()
  rng = np.random.default_rng(0)
  for number in range(len(whole)):
    data = bytearray(whole)
    data[number] = rng.integers(256)
    place = tmp_path / "y.zip"
    place.write_bytes(data)
    try:
      source = archive.Archive(place)
      for name in source.names:
        source.read(name)
    except UserError as e:
      assert str(place) in str(e)
      assert "\n" not in str(e)


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_file_that_is_too_large_is_named_in_one_line(
  tmp_path, monkeypatch, kind
):
  monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
  data = {"fits.png": bytes(1 << 20), "huge.png": bytes((1 << 20) + 1)}
  if kind == "folder":
    place = folder(tmp_path / "x", data)
    for name, content in data.items():
      (place / name).write_bytes(content)
  else:
    place = tmp_path / "x.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
      for name, content in data.items():
        file.writestr(name, content)
  source = archive.Archive(place)
  assert source.read("fits.png") == data["fits.png"]
  with pytest.raises(
    UserError, match=r"huge\.png has more than 1 MiB"
  ) as error:
    source.read("huge.png")
  assert str(place) in str(error.value)
  assert "\n" not in str(error.value)


def test_an_entry_that_hides_its_size_does_not_fill_the_memory(tmp_path):
  real, claimed = 1 << 26, 1 << 10
  place = tmp_path / "x.zip"
  with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("bomb.png", bytes(real))
  data = bytearray(place.read_bytes())
  entry = data.rindex(b"PK\1\2")
  assert data[entry + 24 : entry + 28] == real.to_bytes(4, "little")
  data[entry + 24 : entry + 28] = claimed.to_bytes(4, "little")
  place.write_bytes(data)
  source = archive.Archive(place)
  tracemalloc.start()
  with pytest.raises(UserError, match=r"bomb\.png is damaged"):
    source.read("bomb.png")
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert peak < real / 16


def test_memory_stays_small_up_to_the_limit(tmp_path, monkeypatch):
  monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
  place = tmp_path / "x.zip"
  with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("bomb.png", bytes(1 << 26))
  source = archive.Archive(place)
  tracemalloc.start()
  with pytest.raises(UserError, match="more than 1 MiB"):
    source.read("bomb.png")
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert peak < 1 << 22


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_a_limit_are_refused(tmp_path, method):
  place = tmp_path / "x.zip"
  with zipfile.ZipFile(place, "w", method) as file:
    file.writestr("a.png", bytes(1 << 20))
  with pytest.raises(UserError, match=r"a\.png is packed with .*: unpack"):
    archive.Archive(place).read("a.png")


def test_the_error_says_that_a_folder_does_not_exist(tmp_path):
  with pytest.raises(UserError, match=r"none does not exist: get x here"):
    archive.find(str(tmp_path / "none"), ["x"], "get x here")


def test_folders_come_before_zips_and_case_does_not_matter(tmp_path):
  packed(tmp_path / "X.zip", ["a.png"])
  find = lambda: archive.find(str(tmp_path), ["x", "other"], "").path
  assert find() == tmp_path / "X.zip"
  folder(tmp_path / "Other", ["a.png"])
  assert find() == tmp_path / "X.zip"
  folder(tmp_path / "x", ["a.png"])
  assert find() == tmp_path / "x"
