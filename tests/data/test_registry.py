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


def test_the_error_for_an_empty_data_dir_says_where_to_get_the_data():
  with pytest.raises(UserError, match=r"data_dir is empty.*pacs.*Dassl"):
    registry.load("pacs", "", 8)
