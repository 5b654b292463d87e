"""Compiled code is kept between starts, and never gets in the way."""

import json
import os
import pathlib
import subprocess
import sys
import time
import zlib

import pytest
from conftest import ROOT

from comen_jax.process import compilation

OLD = time.time() - 3600
CODE = """
import json, collections
import jax
from comen_jax.process import compilation
compilation.keep()
counts = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **_: counts.update([name]))
jax.jit(lambda x: x * 2)(1.0)
hits = counts["/jax/compilation_cache/cache_hits"]
print(json.dumps([jax.config.jax_compilation_cache_dir, hits]))
"""


def start(**variables: str):
  """Compiles one function -> the folder, the number of hits, error output."""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
  if "JAX_COMPILATION_CACHE_DIR" not in variables:
    del environment["JAX_COMPILATION_CACHE_DIR"]
  done = subprocess.run(
    [sys.executable, "-c", CODE],
    env=environment, capture_output=True, text=True, check=True,
  )  # fmt: skip
  return (*json.loads(done.stdout), done.stderr)


def test_the_second_start_finds_the_code_of_the_first(tmp_path):
  folder, hits, err = start(COMEN_JAX_CACHE=str(tmp_path))
  assert pathlib.Path(folder) == tmp_path / "compiled" / compilation.kind()
  assert (hits, err) == (0, "")
  assert start(COMEN_JAX_CACHE=str(tmp_path)) == (folder, 1, "")


def test_the_folder_of_the_user_wins(tmp_path):
  own = str(tmp_path / "own")
  folder, _, err = start(
    COMEN_JAX_CACHE=str(tmp_path / "cache"), JAX_COMPILATION_CACHE_DIR=own
  )
  assert (folder, err) == (own, "")
  assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_written_is_one_warning(tmp_path):
  (tmp_path / "file").touch()
  folder, _, err = start(COMEN_JAX_CACHE=str(tmp_path / "file"))
  assert folder is None
  assert err.startswith("WARNING: ") and err.count("\n") == 1
  assert "set JAX_COMPILATION_CACHE_DIR" in err


@pytest.mark.skipif(
  not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here"
)
def test_another_number_of_cores_is_another_kind(monkeypatch):
  names = set()
  for cores in ({0}, {0, 1}, {0, 1}):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
    names.add(compilation.kind())
  assert len(names) == 2


def make(folder, name, data, seconds=OLD):
  path = folder / f"{name}-cache"
  path.parent.mkdir(exist_ok=True)
  path.write_bytes(data)
  os.utime(path, (seconds, seconds))
  return path


def test_files_not_read_for_longest_are_deleted_first(tmp_path):
  # Not compressible, so that the sizes are known.
  data = zlib.compress(os.urandom(1000))
  paths = [
    make(tmp_path / f"kind{k % 2}", f"f{k}", data, OLD + k) for k in range(4)
  ]
  compilation.tidy(tmp_path, 4 * len(data))
  assert all(path.exists() for path in paths)
  os.utime(paths[0], (OLD + 9, OLD))  # It was read.
  for path in paths[1:]:
    os.utime(path, (OLD, OLD + int(path.name[1])))
  compilation.tidy(tmp_path, 2 * len(data))
  assert [path.exists() for path in paths] == [True, False, False, True]


def test_what_a_killed_process_left_is_deleted(tmp_path):
  data = zlib.compress(os.urandom(1000))
  whole = make(tmp_path, "whole", data)
  broken = make(tmp_path, "broken", data[:-9])
  empty = make(tmp_path, "empty", b"")
  other = make(tmp_path, "zstandard", b"\x28\xb5\x2f\xfd...")
  young = make(tmp_path, "young", data[:-9], time.time())
  for _ in range(2):
    compilation.tidy(tmp_path, 10**6)
    paths = (whole, broken, empty, other, young)
    found = [path.exists() for path in paths]
    assert found == [True, False, False, True, True]
