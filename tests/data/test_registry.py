"""Data sets by name."""

import pytest

from comen_jax.data import registry
from comen_jax.errors import UserError


def test_the_error_for_an_unknown_data_set_lists_the_names():
  with pytest.raises(UserError, match="'imagenet'") as error:
    registry.load("imagenet", "", 32)
  for name in ("digits_dg", "mini_digits"):
    assert name in str(error.value)


@pytest.mark.parametrize("data_dir", ["", "/no/such/folder"])
def test_the_error_for_a_missing_folder_shows_the_layout(data_dir):
  with pytest.raises(UserError, match=r"<domain>/<class>/<image>"):
    registry.load("folder", data_dir, 8)


@pytest.mark.parametrize("name", ["folder", "pacs", "digits_dg"])
def test_the_error_says_that_a_folder_does_not_exist(name):
  with pytest.raises(
    UserError, match="data_dir=/no/such/folder does not exist"
  ):
    registry.load(name, "/no/such/folder", 8)


def test_a_file_that_is_no_zip_is_refused(tmp_path):
  (tmp_path / "mine.tar").write_text("x")
  with pytest.raises(UserError, match=r"mine\.tar is no folder and no zip"):
    registry.load("folder", str(tmp_path / "mine.tar"), 8)
  (tmp_path / "mine.zip").write_text("x")
  with pytest.raises(UserError, match=r"mine\.zip is not a complete zip"):
    registry.load("folder", str(tmp_path / "mine.zip"), 8)


def test_the_error_for_an_empty_data_dir_says_where_to_get_the_data():
  with pytest.raises(UserError, match=r"data_dir is empty.*pacs.*Dassl"):
    registry.load("pacs", "", 8)
