"""Every seed as a dot, from records alone."""

import itertools

import pytest

from comen_jax.report import grouping
from comen_jax.report.plots import dots, theme
from comen_jax.report.plots.sections import draw_seeds

from ..helpers import ALL, grid, record


def compare(records):
  (comparison,) = grouping.comparisons(records)
  return comparison


def test_every_seed_is_a_dot_and_several_have_a_mean():
  records = grid("comen", ALL) + grid("deepall", {"svhn": (0.3,)})
  rows = dots.rows(compare(records), "svhn")
  assert [(r.title, r.colour, dict(r.values)) for r in rows] == [
    ("DeepAll", 0, {0: 30.0}),
    ("COMEN", 1, {0: 60.0, 1: 60.0}),
  ]
  (axes,) = dots.figure("svhn", rows, theme.LIGHT).axes
  drawn = [(line.get_marker(), list(line.get_xdata())) for line in axes.lines]
  assert drawn == [("o", [30.0]), ("o", [60.0, 60.0]), ("|", [60.0])]
  assert axes.get_title("left") == "target svhn"


def test_names_of_several_lines_do_not_meet():
  long = "COMEN with true domains (uses domain labels), M = 3"
  rows = [dots.Row(title, None, {0: 50.0}) for title in (long, long, "a")]
  whole = dots.figure("svhn", rows, theme.LIGHT)
  whole.draw_without_rendering()
  boxes = [t.get_window_extent() for t in whole.axes[0].get_yticklabels()]
  # The first row is the highest.
  gaps = [above.y0 - below.y1 for above, below in itertools.pairwise(boxes)]
  assert min(gaps) > 0
  lines = dots.label(long).replace("\N{NO-BREAK SPACE}", " ").split("\n")
  assert len(lines) == 3 and lines[-1].endswith("M = 3")


def test_small_differences_do_not_fill_the_axis():
  rows = [dots.Row("a", None, {0: 50.0}), dots.Row("b", None, {0: 50.2})]
  low, high = dots.limits(rows)
  assert high - low >= 8
  assert (low + high) / 2 == pytest.approx(50.1)
  wide = [dots.Row("a", None, {0: 20.0, 1: 90.0})]
  low, high = dots.limits(wide)
  assert low < 20 and high > 90


def test_a_panel_per_target_that_has_runs_and_none_for_parts(tmp_path):
  some = {"svhn": (0.5,), "syn": (0.6, 0.7)}
  records = grid("comen", some) + grid("sdnorm", ALL)
  section = draw_seeds([compare(records)], tmp_path)
  (picture,) = section.pictures
  assert [p.path.name.split("-")[-1] for p in picture.panels] == [
    "svhn.png",
    "syn.png",
  ]


def test_dots_are_drawn_again_only_if_a_value_changes(tmp_path):
  draw = lambda value: draw_seeds([compare([record(accuracy=value)])], tmp_path)
  (panel,) = draw(0.5).pictures[0].panels
  date = panel.path.stat().st_mtime_ns
  draw(0.5)
  assert panel.path.stat().st_mtime_ns == date
  draw(0.75)
  assert panel.path.stat().st_mtime_ns > date
