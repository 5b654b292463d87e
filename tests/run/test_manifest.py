"""Checksums of a folder: which damages are found, and how they are named."""

import json
import random

import pytest

from comen_jax.run import manifest

FILES = {
  "_METADATA": b'{"a": 1}',
  "default/d/1234": bytes(range(256)) * 40,
  "default/empty": b"",
  "metrics/metrics": b'{"rank": 0.5}',
}


@pytest.fixture
def folder(tmp_path):
  for name, data in FILES.items():
    place = tmp_path / "7" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
  manifest.write(tmp_path / "7")
  return tmp_path / "7"


def _flip(path, bit):
  data = bytearray(path.read_bytes())
  data[bit // 8] ^= 1 << bit % 8
  path.write_bytes(data)


def test_a_folder_as_it_was_written_is_good(folder):
  manifest.verify(folder)
  names = {p.name for p in folder.iterdir()}
  assert names == {"_METADATA", "default", "metrics", manifest.NAME}
  manifest.write(folder)
  manifest.verify(folder)


def test_any_flipped_bit_is_found(folder):
  rng = random.Random(0)
  places = [folder / name for name, data in FILES.items() if data]
  for n in range(90):
    place = places[n % len(places)]
    bit = rng.randrange(8 * place.stat().st_size)
    _flip(place, bit)
    with pytest.raises(
      manifest.DamagedError, match=f"{place.name} has changed"
    ):
      manifest.verify(folder)
    _flip(place, bit)
  manifest.verify(folder)


def test_a_flipped_bit_of_the_manifest_never_hides_a_change(folder):
  """A flip between two tokens may leave the same values: that is no damage."""
  place = folder / manifest.NAME
  same = json.loads(place.read_text())
  for bit in range(0, 8 * place.stat().st_size, 31):
    _flip(place, bit)
    try:
      manifest.verify(folder)
      assert json.loads(place.read_bytes()) == same
    except manifest.DamagedError as e:
      assert not isinstance(e, manifest.UnsealedError)
    _flip(place, bit)


@pytest.mark.parametrize("left", [0, 1, 10239])
def test_a_cut_file_is_found_by_its_size(folder, left, monkeypatch):
  place = folder / "default/d/1234"
  place.write_bytes(FILES["default/d/1234"][:left])
  # Nothing is read for that.
  monkeypatch.setattr(manifest, "_digest", pytest.fail)
  with pytest.raises(manifest.DamagedError, match=f"{left} bytes, not 10240"):
    manifest.verify(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_found(folder, name):
  (folder / name).unlink()
  with pytest.raises(manifest.DamagedError, match=f"{name} is missing"):
    manifest.verify(folder)


@pytest.mark.parametrize("name", ["extra", f"default/{manifest.NAME}"])
def test_an_extra_file_is_found(folder, name):
  (folder / name).write_bytes(b"")
  with pytest.raises(manifest.DamagedError, match=f"{name} was added"):
    manifest.verify(folder)


def test_a_folder_without_manifest_is_told_from_a_damaged_one(folder):
  (folder / manifest.NAME).unlink()
  with pytest.raises(manifest.UnsealedError):
    manifest.verify(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"a": 1}', '{"a": {}}'])
def test_a_manifest_that_is_none_is_damage(folder, text):
  (folder / manifest.NAME).write_text(text)
  with pytest.raises(manifest.DamagedError, match="not a list of checksums"):
    manifest.verify(folder)
