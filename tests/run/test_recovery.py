"""What becomes of checkpoints that cannot be trusted."""

import pytest
from made_runs import fingerprint

from comen_jax.errors import UserError
from comen_jax.run import manifest, recovery


def _folder(tmp_path, *numbers):
  """Checkpoints in all but name: what is in their files does not matter."""
  for number in numbers:
    folder = tmp_path / str(number)
    folder.mkdir()
    (folder / "data").write_bytes(b"0123")
    manifest.write(folder)
  return tmp_path


def _damage(folder):
  (folder / "data").write_bytes(b"0124")


def test_good_checkpoints_are_left_alone_without_a_word(tmp_path, capsys):
  folder = _folder(tmp_path, 2, 5, 10)
  before = fingerprint(folder)
  recovery.screen(folder)
  assert recovery.numbers(folder) == [2, 5, 10]
  assert fingerprint(folder) == before
  assert capsys.readouterr().out == ""


def test_no_folder_has_no_checkpoints(tmp_path):
  recovery.screen(tmp_path / "none")
  assert recovery.numbers(tmp_path / "none") == []


def test_what_is_being_written_is_no_checkpoint(tmp_path):
  folder = _folder(tmp_path, 2)
  (folder / "3.orbax-checkpoint-tmp").mkdir()
  (folder / "4").write_text("a file")
  recovery.screen(folder)
  assert recovery.numbers(folder) == [2]


@pytest.mark.parametrize(
  ("bad", "left"), [((10,), 5), ((5, 10), 2), ((2,), 10), ((2, 10), 5)]
)
def test_damaged_ones_are_moved_aside_and_named(tmp_path, capsys, bad, left):
  folder = _folder(tmp_path, 2, 5, 10)
  for number in bad:
    _damage(folder / str(number))
  recovery.screen(folder)
  assert recovery.numbers(folder) == sorted({2, 5, 10} - set(bad))
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == len(bad)
  for line, number in zip(lines, bad, strict=True):
    assert f"checkpoint {folder / str(number)} is damaged" in line
    assert "data has changed" in line
    assert f"checkpoint {left} is used" in line
    assert (folder / "damaged" / str(number) / "data").exists()


def test_a_number_can_be_damaged_twice(tmp_path):
  folder = _folder(tmp_path, 2)
  for _ in range(2):
    _folder(tmp_path, 3)
    _damage(folder / "3")
    recovery.screen(folder)
    assert recovery.numbers(folder) == [2]


def test_if_none_is_good_nothing_is_changed_and_one_line_says_what_to_do(
  tmp_path,
):
  folder = _folder(tmp_path, 2, 5)
  _damage(folder / "2")
  (folder / "5" / "data").unlink()
  before = fingerprint(folder)
  with pytest.raises(UserError) as caught:
    recovery.screen(folder)
  text = str(caught.value)
  assert "2: data has changed; 5: data is missing" in text
  assert "another --workdir" in text and f"remove {folder}" in text
  assert "\n" not in text
  assert fingerprint(folder) == before


def test_one_that_a_kill_cut_off_is_removed(tmp_path, capsys):
  folder = _folder(tmp_path, 2, 5, 6)
  (folder / "6" / manifest.NAME).unlink()
  recovery.screen(folder)
  assert recovery.numbers(folder) == [2, 5]
  assert not (folder / "damaged").exists()
  assert f"{folder / '6'} is incomplete" in capsys.readouterr().out


def test_one_that_a_kill_cut_off_does_not_stand_in_for_a_damaged_one(tmp_path):
  folder = _folder(tmp_path, 5, 6)
  _damage(folder / "5")
  (folder / "6" / manifest.NAME).unlink()
  with pytest.raises(UserError, match=r"no checkpoint in .* is good"):
    recovery.screen(folder)
  assert recovery.numbers(folder) == [5, 6]


def test_those_of_an_older_version_are_used_and_get_checksums(tmp_path, capsys):
  folder = _folder(tmp_path, 5, 6)
  for number in (5, 6):
    (folder / str(number) / manifest.NAME).unlink()
  recovery.screen(folder)
  assert "had no checksums" in capsys.readouterr().out
  assert recovery.numbers(folder) == [5, 6]
  recovery.screen(folder)
  assert capsys.readouterr().out == ""
