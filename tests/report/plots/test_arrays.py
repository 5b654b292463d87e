"""analysis.npz that is whole, and that is not."""

import numpy as np
import pytest

from comen_jax.report.plots import arrays as reading

from ..helpers import arrays


@pytest.fixture
def path(tmp_path):
  np.savez_compressed(tmp_path / "analysis.npz", **arrays())
  return tmp_path / "analysis.npz"


def refused(path):
  """Returns the one line about the file."""
  told = []
  assert reading.read(path, told.append) is None
  (line,) = told
  assert str(path) in line and "\n" not in line
  return line


def test_a_whole_file_is_read(path):
  found = reading.read(path, pytest.fail)
  assert found.keys() == arrays().keys()


def test_flipped_bits_are_found_or_harmless(path):
  """A flip either changes no array or is told in one line."""
  whole, good = path.read_bytes(), reading.read(path, pytest.fail)
  rng = np.random.default_rng(0)
  refusals = 0
  for place in rng.integers(0, 8 * len(whole), 200):
    data = bytearray(whole)
    data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)
    told = []
    found = reading.read(path, told.append)
    if found is None:
      refusals += 1
      assert len(told) == 1 and str(path) in told[0]
    else:
      assert all((found[k] == good[k]).all() for k in found)
  assert refusals > 100


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_file_cut_short_is_one_line(path, share):
  data = path.read_bytes()
  path.write_bytes(data[: int(share * len(data))])
  assert "damaged" in refused(path)


@pytest.mark.parametrize(
  ("change", "said"),
  [
    ({"confusion": None}, "no confusion"),
    ({"confusion": np.zeros((3, 4))}, "confusion"),
    ({"features": np.zeros(24)}, "features"),
    ({"class": np.full(24, 9)}, "class"),
    ({"target": np.array("elsewhere")}, "target"),
    ({"affinity": np.zeros((5, 5))}, "affinity"),
    ({"features": np.array([object()] * 24)}, "damaged"),
  ],
)
def test_arrays_that_do_not_fit_are_told(path, change, said):
  made = {k: v for k, v in (arrays() | change).items() if v is not None}
  np.savez(path, **made)
  assert said in refused(path)
