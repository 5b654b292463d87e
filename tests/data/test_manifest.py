"""The manifests of fixed files never change: results are compared by them."""

import itertools

import numpy as np
import pytest

from comen_jax.data import registry
from comen_jax.data.benchmarks import BENCHMARKS

DIGITS = [
  f"digits_dg/{domain}/{split}/{label}/{number}.ppm"
  for domain in BENCHMARKS["digits_dg"].domains
  for split, count in (("train", 2), ("val", 1))
  for label, number in itertools.product(range(10), range(count))
]
OWN = [
  f"{domain}/{name}/{number}.ppm"
  for domain, name in itertools.product("abc", ("cat", "dog"))
  for number in range(12)
]
MANIFESTS = {
  "digits_dg": (
    "6ae823ebee03a6950ba57dedda3ea78c0fcfe5c622db2dbc6735d7abc34088fe"
  ),
  "folder": "4feb1e818a1a8106a3840fe14a5452f902999512e202659587869819bcc7a6df",
}


def pixels(number):
  """Different pixels [2, 2, 3] for every number, without a random generator."""
  return np.arange(12, dtype=np.uint8).reshape(2, 2, 3) + np.uint8(number % 240)


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_manifest_and_rows_of_fixed_files_stay_the_same(
  name, tmp_path, cache
):
  files = DIGITS if name == "digits_dg" else OWN
  for number, file in enumerate(files):
    place = tmp_path / "data" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"P6 2 2 255\n" + pixels(number).tobytes())
  dataset = registry.load(name, str(tmp_path / "data"), 2)
  assert dataset.manifest == MANIFESTS[name]
  order = np.argsort(files)
  np.testing.assert_array_equal(dataset.images, [pixels(n) for n in order])
