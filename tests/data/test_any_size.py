"""Data larger than the memory that their preparation may take."""

import itertools
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from data.helpers import start_python

SIDE = 3200  # Pixels: a BMP of 31 MB.
FILES = 40  # 1.2 GB, more than the 1,000 MiB that TFDS collects in memory.
LIMIT = 1_500_000_000
# The child is a process of its own, so that its peak of memory is its own.
CHILD = """
import resource, sys
from comen_jax.data import prepare
prepare.main(sys.argv[1:])
print("peak", 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
  """Images of noise, which nothing compresses; all is deleted at the end."""
  root = tmp_path_factory.mktemp("large")
  rng = np.random.default_rng(0)
  for number in range(FILES):
    noise = np.frombuffer(rng.bytes(3 * SIDE * SIDE), np.uint8)
    Image.fromarray(noise.reshape(SIDE, SIDE, 3)).save(root / f"{number}.bmp")
  yield root
  shutil.rmtree(root)


def layout_of_folder(number):
  domain, name = divmod(number % 4, 2)
  return f"{'ab'[domain]}/{'xy'[name]}/{number}.bmp"


def layout_of_digits(number):
  """All large images are in one domain and split."""
  return f"digits_dg/mnist/train/{number % 10}/{number}.bmp"


@pytest.mark.slow
@pytest.mark.parametrize(
  ("name", "place"),
  [("folder", layout_of_folder), ("digits_dg", layout_of_digits)],
)
def test_more_than_a_gigabyte_is_prepared_in_little_memory(large, name, place):
  root = large / name
  for number in range(FILES):
    link = root / place(number)
    link.parent.mkdir(parents=True, exist_ok=True)
    os.link(large / f"{number}.bmp", link)
  if name == "digits_dg":
    domains = ("mnist", "mnist_m", "svhn", "syn")
    for cell in itertools.product(domains, ("train", "val"), range(10)):
      small = root / "digits_dg" / "/".join(map(str, cell)) / "small.png"
      small.parent.mkdir(parents=True, exist_ok=True)
      Image.new("RGB", (4, 4), (cell[2], 0, 0)).save(small)
  size = sum(f.stat().st_size for f in root.rglob("*.bmp"))
  assert size > 1.2e9
  cache = large / "cache"
  child = start_python(
    ["-c", CHILD, "--dataset", name, "--data_dir", str(root), "--size", "64"],
    COMEN_JAX_CACHE=str(cache),
  )
  out, err = child.communicate(timeout=900)
  copied = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())
  shutil.rmtree(cache)
  assert child.returncode == 0, err
  peak = int(out.split()[-1])
  print(f"{name}: {size:,} bytes of images, peak of memory {peak:,} bytes")
  assert peak < LIMIT
  assert (copied > 1.2e9) == (name == "digits_dg")
