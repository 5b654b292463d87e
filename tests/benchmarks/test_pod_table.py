"""The page on pods shows the record, and the record meets the aims."""

import json
import pathlib

import pytest

from benchmarks import pod_table
from benchmarks.scaling import V5E

ROOT = pathlib.Path(__file__).parents[2]
RECORD = json.loads((ROOT / "results" / "pod.json").read_text())
STEPS = [s for s in RECORD["steps"].values() if "error" not in s]


def test_the_page_shows_the_tables_of_the_record():
  page = (ROOT / "docs" / "scale.md").read_text()
  for part in pod_table.render(RECORD).split("\n\n"):
    assert part in page


def test_no_step_exchanges_what_it_need_not():
  assert {
    name: s["defects"]
    for name, s in RECORD["steps"].items()
    if s.get("defects")
  } == {}
  assert {kind for s in STEPS for kind in s["collectives"]} == {"all-reduce"}
  assert max(map(pod_table.reduced_share, STEPS)) <= 1.1


def test_128_images_fit_into_a_chip():
  sizes = [s["memory_bytes"] for s in STEPS if s["batch"] == "per_chip"]
  assert max(sizes) <= V5E.memory


def test_a_step_is_timed_by_its_own_bytes():
  step = {
    "chips": 2, "flops": 197e9, "roles": {"weights": 200_000},
    "collectives": {"all-reduce": {"number": 3, "bytes": 300_000}},
  }  # fmt: skip
  assert pod_table.traffic(step) == (200_000, 100_000, 3)
  # On two chips a ring takes as long as sending the array once.
  found = pod_table.times(step)
  assert found.compute == pytest.approx(1e-3)
  assert found.reduce == pytest.approx(300_000 / 200e9)
