"""All figures of a report, drawn from folders of runs."""

import shutil

import numpy as np
import pytest
from PIL import Image

from comen_jax.report.palette import DARK, LIGHT
from comen_jax.report.plots.sections import draw

from ..helpers import arrays, drawable, log

DOMAINS = ("ink", "photo", "paint")


def pair(root):
  """DeepAll and COMEN, two seeds each, only the second of DeepAll analysed."""
  deep = arrays(latent=False)
  return [
    drawable(root, "deepall", 0, None, log(4, 3, 2, 1)),
    drawable(root, "deepall", 1, deep, log(4, 3, 2, 1)),
    drawable(root, "comen", 1, arrays(seed=1), log(4, 3, 2, 1)),
    drawable(root, "comen", 0, arrays(), log(6, 5, 2, 3)),
  ]


@pytest.fixture(scope="module")
def pair_drawn(tmp_path_factory):
  """Records of the pair, and the sections of its figures."""
  root = tmp_path_factory.mktemp("drawn")
  records = pair(root)
  return records, draw(records, root / "report")


@pytest.fixture(scope="module")
def drawn(pair_drawn):
  return pair_drawn[1]


def _titles(sections):
  return [s.title for s in sections]


def test_every_kind_of_figure_is_drawn_light_and_dark(drawn):
  assert _titles(drawn) == [
    "Training curves",
    "Confusion matrices",
    "Features",
    "Images of latent domains",
    "Prototype graph",
  ]
  for section in drawn:
    (picture,) = section.pictures
    assert "own, target photo" in picture.caption
    for panel in picture.panels:
      for path, palette in ((panel.path, LIGHT), (panel.dark, DARK)):
        assert path.parent.name == "report"
        with Image.open(path) as image:
          assert image.format == "PNG"
          # Narrow enough for a phone.
          assert image.width / image.info["dpi"][0] < 3.6
          corner = image.convert("RGB").getpixel((0, 0))
        assert "#{:02x}{:02x}{:02x}".format(*corner) == palette.background


def test_methods_and_domains_have_panels_of_their_own(drawn):
  counts = [len(section.pictures[0].panels) for section in drawn]
  assert counts == [2, 2, 4, 2, 2]


def test_the_lowest_seed_that_was_analysed_is_named(drawn):
  _, confusion, features, gallery, _ = drawn
  for section in (confusion, features):
    caption = section.pictures[0].caption
    assert "DeepAll (seed 1) and COMEN (seed 0)" in caption
  assert "COMEN (seed 0)" in gallery.pictures[0].caption


def test_contingency_stands_beside_the_gallery(drawn):
  (table,) = drawn[3].tables
  assert table.header == ("", "images", *DOMAINS)
  heading, first, second = table.rows
  assert [c.text for c in heading] == ["target photo, COMEN, seed 0"]
  assert [c.text for c in first] == [
    "latent domain 0", "1,230", "1,200", "held out", "30"
  ]  # fmt: skip
  assert [c.bold for c in second] == [False, False, False, False, True]


def test_nothing_is_drawn_of_runs_without_a_folder_or_analysis(tmp_path):
  bare = drawable(tmp_path, metrics=log(2, 1))
  assert _titles(draw([bare], tmp_path / "report")) == ["Training curves"]
  gone = bare._replace(folder=None)
  assert draw([gone], tmp_path / "none") == ()
  assert draw([], tmp_path / "none") == ()


def test_a_method_alone_is_drawn_and_named(tmp_path):
  alone = drawable(tmp_path, "deepall", analysis=arrays(latent=False))
  sections = draw([alone], tmp_path / "report")
  assert _titles(sections) == ["Confusion matrices", "Features"]
  assert "DeepAll (seed 0)" in sections[0].pictures[0].caption
  assert "COMEN" not in sections[0].pictures[0].caption


def test_sixty_five_classes_have_no_legend_but_a_word_about_it(tmp_path):
  many = drawable(tmp_path, analysis=arrays(classes=65, points=130))
  _, features, _, graph = draw([many], tmp_path / "report")
  assert "65 classes are too many" in features.pictures[0].caption
  assert "130 prototypes" in graph.pictures[0].caption


def test_only_what_was_drawn_of_other_arrays_is_drawn_again(
  pair_drawn, tmp_path
):
  # In a copy: nothing is drawn again because of another place.
  root = pair_drawn[0][0].folder.parent
  shutil.copytree(root, tmp_path, dirs_exist_ok=True)
  records = [r._replace(folder=tmp_path / r.folder.name) for r in pair_drawn[0]]
  files = sorted((tmp_path / "report").iterdir())
  dates = [path.stat().st_mtime_ns for path in files]
  assert len(files) == 24
  draw(records, tmp_path / "report")
  assert [path.stat().st_mtime_ns for path in files] == dates

  features = tmp_path / "report" / "tsne-own-photo-COMEN-side.png"
  assert features.exists()
  features.write_bytes(b"cut off")
  confusion = tmp_path / "report" / "confusion-own-photo-DeepAll.png"
  gallery = tmp_path / "report" / "latent-own-photo-COMEN-0.png"
  before = confusion.read_bytes(), gallery.read_bytes()
  deepall = records[1].folder / "analysis.npz"
  np.savez(deepall, **arrays(latent=False, seed=5))
  draw(records, tmp_path / "report")
  assert confusion.read_bytes() != before[0]
  assert gallery.read_bytes() == before[1]
  with Image.open(features) as image:
    image.load()
