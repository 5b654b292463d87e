"""Counts of images, compared with the published counts."""

import numpy as np
import pytest

from comen_jax.data.benchmarks import BENCHMARKS, counts
from data.helpers import tiny_dataset


def tiny(cells):
  """A data set with `cells[domain, class, split]` images."""
  rows = [i for i, n in np.ndenumerate(cells) for _ in range(n)]
  domains, labels, splits = np.array(rows).T
  return tiny_dataset(
    labels,
    domains,
    splits,
    class_names=("cat", "dog"),
    domain_names=("photo", "sketch"),
  )


CELLS = np.array([[[3, 1], [4, 2]], [[5, 1], [6, 2]]])


def test_every_cell_is_counted():
  np.testing.assert_array_equal(counts.count(tiny(CELLS)), CELLS)


def test_the_table_says_that_all_counts_are_as_published():
  text = counts.report(
    tiny(CELLS),
    {"photo": (7, 3), "sketch": 14},
    {("photo", "cat"): (3, 1), ("sketch", "dog"): 8},
  )
  assert "3/1" in text
  assert "*" not in text
  assert "All counts equal the published ones" in text


def test_the_table_marks_what_differs():
  text = counts.report(
    tiny(CELLS),
    {"photo": (6, 4), "sketch": 15},
    {("photo", "cat"): (2, 2), ("sketch", "dog"): 8},
  )
  lines = text.splitlines()
  assert lines[0].split() == ["train/val", "photo", "sketch"]
  assert lines[1].split() == ["cat", "3/1*", "5/1"]
  assert lines[2].split() == ["dog", "4/2", "6/2"]
  assert lines[3].split() == ["all", "classes", "7/3*", "11/3*"]
  assert lines[4].split() == ["published", "6/4", "15"]
  assert "photo 7/3 (published 6/4)" in lines[-1]
  assert "sketch 14 (published 15)" in lines[-1]
  assert "photo cat 3/1 (published 2/2)" in lines[-1]
  assert "dog" not in lines[-1]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_published_counts_are_consistent(name):
  spec = BENCHMARKS[name]
  both = lambda count: sum(count) if isinstance(count, tuple) else count
  assert set(spec.published_domains) == set(spec.domains)
  assert spec.default_target in spec.domains
  if spec.published_cells:
    for domain, count in spec.published_domains.items():
      cells = (spec.published_cells[domain, c] for c in spec.classes)
      assert sum(map(both, cells)) == both(count)
  totals = sum(map(both, spec.published_domains.values()))
  want = {
    "digits_dg": 24_000, "pacs": 9_991, "vlcs": 10_729, "office_home": 15_588,
  }  # fmt: skip
  assert totals == want[name]
