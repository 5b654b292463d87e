"""A folder appears whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from comen_jax.data import disk
from comen_jax.errors import UserError


def test_a_block_that_succeeds_leaves_its_folder(tmp_path):
  with disk.new_folder(tmp_path / "rows/key") as draft:
    (draft / "a").write_text("1")
    assert not (tmp_path / "rows/key").exists()
  assert os.listdir(tmp_path / "rows") == ["key"]
  assert (tmp_path / "rows/key/a").read_text() == "1"


def test_of_two_writers_the_first_to_finish_wins(tmp_path):
  with disk.new_folder(tmp_path / "key") as one:
    (one / "a").write_text("1")
    with disk.new_folder(tmp_path / "key") as other:
      (other / "a").write_text("2")
  assert os.listdir(tmp_path) == ["key"]
  assert (tmp_path / "key/a").read_text() == "2"


FULL = [
  OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
  OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
  # The message of array_record.
  RuntimeError("write() failed: No space left on device; at byte 2097152"),
]


@pytest.mark.parametrize("error", FULL, ids=lambda e: type(e).__name__)
def test_a_full_disk_gives_one_line_and_leaves_nothing(tmp_path, error):
  with (
    pytest.raises(UserError, match="no space is left") as raised,
    disk.new_folder(tmp_path / "key") as draft,
  ):
    (draft / "a").write_text("1")
    raise error
  assert str(tmp_path) in str(raised.value)
  assert "COMEN_JAX_CACHE" in str(raised.value)
  assert os.listdir(tmp_path) == []


def test_the_error_names_a_cache_that_cannot_be_written(tmp_path):
  (tmp_path / "file").write_text("in the way")
  with (
    pytest.raises(UserError, match="cannot be written") as raised,
    disk.new_folder(tmp_path / "file/rows/key"),
  ):
    raise AssertionError("the draft cannot exist")
  assert str(tmp_path / "file") in str(raised.value)


def test_drafts_of_killed_processes_are_removed_after_a_day(tmp_path):
  for name in (".key-old", ".key-new", ".other-old"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "half").write_text("1")
    if name.endswith("old"):
      os.utime(tmp_path / name, (1, 1))
  with disk.new_folder(tmp_path / "key"):
    pass
  assert sorted(os.listdir(tmp_path)) == [".key-new", ".other-old", "key"]


def test_other_errors_keep_their_kind(tmp_path):
  with pytest.raises(KeyError), disk.new_folder(tmp_path / "key"):
    raise KeyError("ours")
  with (
    pytest.raises(OSError, match="gone"),
    disk.new_folder(tmp_path / "key"),
  ):
    raise OSError("the disk is gone")
  assert os.listdir(tmp_path) == []


def test_the_default_cache_is_the_users(monkeypatch, tmp_path):
  monkeypatch.setenv("COMEN_JAX_CACHE", str(tmp_path))
  assert disk.cache_dir() == tmp_path
  monkeypatch.delenv("COMEN_JAX_CACHE")
  monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
  assert disk.cache_dir() == Path("/somewhere/comen_jax")
  monkeypatch.delenv("XDG_CACHE_HOME")
  assert disk.cache_dir() == Path.home() / ".cache/comen_jax"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
  for name in ("COMEN_JAX_CACHE", "XDG_CACHE_HOME", "HOME"):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setattr(os, "getuid", lambda: 987654321)  # Has no entry.
  with pytest.raises(UserError, match="COMEN_JAX_CACHE") as raised:
    disk.cache_dir()
  assert "\n" not in str(raised.value)
