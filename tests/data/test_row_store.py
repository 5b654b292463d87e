"""A row store is whole or absent, and is built once."""

import hashlib
import os
import threading

import numpy as np
import pytest

from comen_jax.data import row_store
from data.helpers import start_python

N, S = 5, 4
TABLE = row_store.Table(
  names=[f"d/{i}.png" for i in range(N)],
  labels=np.array([0, 1, 2, 0, 1], np.int32),
  domains=np.array([0, 0, 1, 1, 1], np.int32),
  splits=np.array([0, 1, 0, 0, 1], np.uint8),
)
IMAGES = np.random.default_rng(0).integers(0, 256, (N, S, S, 3), np.uint8)
CHECKSUMS = [f"{i:064x}" for i in range(N)]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
  monkeypatch.setenv("COMEN_JAX_CACHE", str(tmp_path))
  return tmp_path


def _build():
  return TABLE, iter(IMAGES), CHECKSUMS


def _never():
  raise AssertionError("built again although the store exists")


def _assert_whole(store):
  np.testing.assert_array_equal(store.images, IMAGES)
  assert store.images.dtype == np.uint8
  assert list(store.table.names) == list(TABLE.names)
  for got, want in zip(store.table[1:], TABLE[1:]):
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype
  assert store.manifest == row_store.manifest_hash(TABLE, CHECKSUMS)


def test_a_store_is_built_once(cache):
  first = row_store.open_or_build("key", S, _build)
  _assert_whole(first)
  _assert_whole(row_store.open_or_build("key", S, _never))
  assert os.listdir(cache / "rows") == ["key"]


def test_another_key_gives_another_store():
  row_store.open_or_build("key", S, _build)
  other = lambda: (TABLE, iter(IMAGES[::-1]), CHECKSUMS)
  got = row_store.open_or_build("other", S, other)
  np.testing.assert_array_equal(got.images, IMAGES[::-1])


def test_an_opened_store_cannot_be_written():
  store = row_store.open_or_build("key", S, _build)
  with pytest.raises(ValueError, match="read-only"):
    store.images[0] = 0


def test_checksums_may_fill_while_images_are_read():
  checksums = []

  def pictures():
    for image, checksum in zip(IMAGES, CHECKSUMS):
      checksums.append(checksum)
      yield image

  build = lambda: (TABLE, pictures(), checksums)
  _assert_whole(row_store.open_or_build("key", S, build))


def test_a_build_that_fails_half_way_leaves_nothing(cache):
  def pictures():
    yield from IMAGES[:3]
    raise OSError("the disk is gone")

  for _ in range(2):  # The next start fails for the same reason.
    with pytest.raises(OSError, match="the disk is gone"):
      row_store.open_or_build("key", S, lambda: (TABLE, pictures(), CHECKSUMS))
    assert os.listdir(cache / "rows") == []
  _assert_whole(row_store.open_or_build("key", S, _build))


@pytest.mark.parametrize("count", [N - 1, N + 1])
def test_a_wrong_number_of_images_gives_no_store(cache, count):
  pictures = np.concatenate([IMAGES, IMAGES])[:count]
  with pytest.raises(ValueError, match=f"{count} images"):
    row_store.open_or_build("key", S, lambda: (TABLE, pictures, CHECKSUMS))
  assert os.listdir(cache / "rows") == []


def test_a_killed_build_is_not_taken_for_whole(cache):
  code = (
    "import os, numpy as np\n"
    "from comen_jax.data import row_store\n"
    "def pictures():\n"
    "  yield np.zeros((4, 4, 3), np.uint8)\n"
    "  os._exit(9)\n"
    "zeros = np.zeros(5, np.int32)\n"
    "table = row_store.Table(list('abcde'), zeros, zeros, zeros)\n"
    "build = lambda: (table, pictures(), list('abcde'))\n"
    "row_store.open_or_build('key', 4, build)\n"
  )
  killed = start_python(["-c", code])
  killed.communicate(timeout=60)
  assert killed.returncode == 9
  _assert_whole(row_store.open_or_build("key", S, _build))


def test_two_builds_at_once_both_give_a_whole_store(cache):
  barrier = threading.Barrier(2, timeout=20)
  stores, errors = [], []

  def pictures():
    yield from IMAGES[:3]
    barrier.wait()  # Both threads are now in the middle of writing.
    yield from IMAGES[3:]

  def start():
    try:
      stores.append(
        row_store.open_or_build(
          "key", S, lambda: (TABLE, pictures(), CHECKSUMS)
        )
      )
    except Exception as e:
      errors.append(e)

  threads = [threading.Thread(target=start) for _ in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert not errors
  assert len(stores) == 2
  for store in stores:
    _assert_whole(store)
  assert os.listdir(cache / "rows") == ["key"]
  _assert_whole(row_store.open_or_build("key", S, _never))


def test_the_manifest_changes_with_everything_known_about_a_row():
  def changed(array):
    array = array.copy()
    array[2] += 1
    return array

  names = [*TABLE.names[:-1], "d/other.png"]
  variants = [
    (TABLE, CHECKSUMS),
    (TABLE._replace(names=names), CHECKSUMS),
    (TABLE._replace(labels=changed(TABLE.labels)), CHECKSUMS),
    (TABLE._replace(domains=changed(TABLE.domains)), CHECKSUMS),
    (TABLE._replace(splits=changed(TABLE.splits)), CHECKSUMS),
    (TABLE, [*CHECKSUMS[:-1], "f" * 64]),
  ]
  hashes = [row_store.manifest_hash(*v) for v in variants]
  assert len(set(hashes)) == len(variants)
  assert row_store.manifest_hash(TABLE, list(CHECKSUMS)) == hashes[0]


def test_the_manifest_depends_on_values_not_on_their_types():
  wide = TABLE._replace(labels=TABLE.labels.astype(np.int64))
  want = row_store.manifest_hash(TABLE, CHECKSUMS)
  assert row_store.manifest_hash(wide, CHECKSUMS) == want


def test_a_manifest_with_too_few_checksums_is_refused():
  with pytest.raises(ValueError):
    row_store.manifest_hash(TABLE, CHECKSUMS[:-1])


def test_images_of_another_size_are_refused(cache):
  build = lambda: (TABLE, np.zeros((N, S, S + 1, 3), np.uint8), CHECKSUMS)
  with pytest.raises(ValueError, match="row 0"):
    row_store.open_or_build("key", S, build)
  assert os.listdir(cache / "rows") == []


def test_the_manifest_hash_is_the_sha256_of_the_text():
  text = row_store.manifest(TABLE, CHECKSUMS)
  assert text.splitlines()[1].split("\t") == [
    "d/1.png", "1", "0", "1", CHECKSUMS[1],
  ]  # fmt: skip
  want = hashlib.sha256(text.encode()).hexdigest()
  assert row_store.manifest_hash(TABLE, CHECKSUMS) == want
