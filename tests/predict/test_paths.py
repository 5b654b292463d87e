"""Which pictures the arguments of a command line mean."""

import io
import os

import pytest

from comen_jax.errors import UserError
from comen_jax.predict import paths


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """Makes photos/{b.PNG,notes.txt,.hidden.png,a/{2,10}.jpg} in the cwd."""
  monkeypatch.chdir(tmp_path)
  (tmp_path / "photos" / "a").mkdir(parents=True)
  for name in ("b.PNG", "notes.txt", ".hidden.png", "a/2.jpg", "a/10.jpg"):
    (tmp_path / "photos" / name).touch()
  return tmp_path


ALL = ["photos/a/10.jpg", "photos/a/2.jpg", "photos/b.PNG"]


@pytest.mark.parametrize("name", ["photos", "photos/", "photos/**", "phot*"])
def test_folder_and_patterns_give_all_pictures_sorted(folder, name):
  assert paths.pictures([name]) == ALL


def test_pattern_gives_what_it_matches(folder):
  assert paths.pictures(["photos/**/*.jpg"]) == ALL[:2]


def test_files_are_taken_by_their_word_in_order_and_once(folder):
  given = ["photos/notes.txt", "gone.png", "photos/b.PNG", "photos"]
  assert paths.pictures(given) == [*given[:3], *ALL[:2]]


def test_file_with_the_name_of_a_pattern_or_list_is_itself(folder):
  for name in ("a[1].png", "@b.png"):
    (folder / name).touch()
    assert paths.pictures([name]) == [name]


def test_lists_name_files_folders_and_patterns(folder, monkeypatch):
  lines = "# mine\nphotos/a/2.jpg\r\n\nphotos/*.PNG\n  #gone\nphotos/a\n"
  (folder / "list.txt").write_text(lines)
  expected = ["photos/a/2.jpg", "photos/b.PNG", "photos/a/10.jpg"]
  assert paths.pictures(["@list.txt"]) == expected
  monkeypatch.setattr("sys.stdin", io.StringIO(lines))
  assert paths.pictures(["-"]) == expected


def test_links_are_followed_but_not_in_a_circle(folder):
  (folder / "other").mkdir()
  os.symlink(folder / "photos", folder / "other" / "link")
  os.symlink(folder / "other", folder / "other" / "link" / "back")
  os.symlink("nowhere", folder / "other" / "z.png")
  assert paths.pictures(["other"]) == [
    "other/link/a/10.jpg",
    "other/link/a/2.jpg",
    "other/link/b.PNG",
    "other/z.png",
  ]


@pytest.mark.parametrize(
  ("name", "text"),
  [
    ("empty", "empty holds no pictures"),
    ("photos/*.bmp", r"photos/\*\.bmp matches no pictures"),
    ("photos/*.txt", "matches no pictures"),
    ("@empty.txt", "@empty.txt names no pictures"),
    ("@gone.txt", "gone.txt cannot be read"),
  ],
)
def test_argument_without_pictures_is_named(folder, name, text):
  (folder / "empty").mkdir()
  (folder / "empty.txt").write_text("\n \n# nothing\n")
  with pytest.raises(UserError, match=text):
    paths.pictures([name])


def test_what_is_no_regular_file_is_named_and_not_waited_for(folder):
  os.mkfifo(folder / "photos" / "pipe.png")
  for path in ("photos/pipe.png", "/dev/zero", "photos"):
    with pytest.raises(UserError, match=f"{path} .* not a regular file"):
      paths.read(path)


def test_a_list_may_be_a_pipe(folder):
  end, other = os.pipe()
  os.write(other, b"photos/a\n")
  os.close(other)
  assert paths.pictures([f"@/dev/fd/{end}"]) == ALL[:2]
  os.close(end)


def test_unreadable_file_is_named(folder):
  with pytest.raises(UserError, match=r"gone\.png cannot be read: No such"):
    paths.read("gone.png")
