"""Figures from folders of runs: which are drawn, and of what."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from comen_jax.report.palette import DARK, LIGHT
from comen_jax.report.plots import (
  curves,
  files,
  gallery,
  prototypes,
  runs,
  theme,
  tsne,
)
from comen_jax.report.plots.sections import draw
from comen_jax.report.records import Record

DOMAINS = ("ink", "photo", "paint")


def _arrays(classes=3, points=24, latent=True, num_domains=2, seed=0):
  """analysis.npz of a run whose target is "photo"."""
  rng = np.random.default_rng(seed)
  nodes = num_domains * classes
  arrays = {
    "confusion": rng.integers(0, 9, (classes, classes)),
    "features": rng.normal(size=(points, 8)).astype(np.float32),
    "class": np.arange(points) % classes,
    "domain": np.arange(points) % 3,
    "prediction": np.arange(points) % classes,
    "class_names": np.array([f"class{k}" for k in range(classes)]),
    "domain_names": np.array(DOMAINS),
    "target": np.array("photo"),
  }
  if latent:
    affinity = rng.uniform(0.5, 1, (nodes, nodes)).astype(np.float32)
    arrays |= {
      "contingency": np.array([[1200, 0, 30], [4, 0, 900]]),
      "thumbnails": rng.integers(0, 255, (2, 24, 4, 4, 3), np.uint8),
      "thumbnail_probs": np.ones((num_domains, 24)),
      "prototypes_seen": np.ones((num_domains, classes), bool),
      "affinity": affinity,
    }
  return arrays


def _log(*values):
  """Epochs of a run of two stages, with a `prepare` between them."""
  half = len(values) // 2
  records = [
    {
      "kind": "epoch",
      "stage": "discover" if n < half else "encode",
      "epoch": n + 1,
      "loss": value,
      "val_accuracy": value / 10,
      **({"target_accuracy": value / 20} if n >= half else {}),
    }
    for n, value in enumerate(values)
  ]
  records.insert(half, {"kind": "prepare", "stage": "encode"})
  return "".join(json.dumps(r) + "\n" for r in records)


def _record(root, row="comen", seed=0, arrays=None, log=None, **measured):
  known = {
    "dataset": "own",
    "target": "photo",
    "sources": ["ink", "paint"],
    "seed": seed,
    "num_domains": 2,
    "manifest": "abc",
    "epochs": 4,
    **measured,
  }
  run = f"{known['dataset']}-{known['target']}-{row}-{known['num_domains']}"
  folder = root / f"{run}-seed{seed}-{known['epochs']}"
  folder.mkdir()
  if arrays is not None:
    np.savez(folder / "analysis.npz", **arrays)
  if log is not None:
    (folder / "metrics.jsonl").write_text(log)
  return Record(folder.name, row, known, {}, folder)


def _pair(root):
  """DeepAll and COMEN, two seeds each, only the second of DeepAll analysed."""
  deep = _arrays(latent=False)
  return [
    _record(root, "deepall", 0, None, _log(4, 3, 2, 1)),
    _record(root, "deepall", 1, deep, _log(4, 3, 2, 1)),
    _record(root, "comen", 1, _arrays(seed=1), _log(4, 3, 2, 1)),
    _record(root, "comen", 0, _arrays(), _log(6, 5, 2, 3)),
  ]


@pytest.fixture(scope="module", autouse=True)
def coarse():
  """A quarter of the resolution, for time's sake."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(theme, "DPI", 50)
    yield


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
  root = tmp_path_factory.mktemp("drawn")
  return draw(_pair(root), root / "report")


def _titles(sections):
  return [s.title for s in sections]


def test_every_kind_of_figure_is_drawn_light_and_dark(drawn):
  assert _titles(drawn) == [
    "Training curves",
    "Confusion matrices",
    "Features",
    "Latent domains in pictures",
    "Prototype graph",
  ]
  for section in drawn:
    (picture,) = section.pictures
    assert "own, target photo" in picture.caption
    for path, palette in ((picture.path, LIGHT), (picture.dark, DARK)):
      assert path.parent.name == "report"
      with Image.open(path) as image:
        assert image.format == "PNG"
        corner = image.convert("RGB").getpixel((0, 0))
      assert "#{:02x}{:02x}{:02x}".format(*corner) == palette.background


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
    "latent domain 0", "1,230", "1,200", "", "30"
  ]  # fmt: skip
  assert [c.bold for c in second] == [False, False, False, False, True]


def test_nothing_is_drawn_of_runs_without_a_folder_or_analysis(tmp_path):
  bare = _record(tmp_path, log=_log(2, 1))
  assert _titles(draw([bare], tmp_path / "report")) == ["Training curves"]
  gone = bare._replace(folder=None)
  assert draw([gone], tmp_path / "none") == ()
  assert draw([], tmp_path / "none") == ()


def test_normalised_deepall_stands_beside_comen_where_plain_was_not_run(
  tmp_path,
):
  records = [
    _record(tmp_path, row, arrays=_arrays(latent=row == "comen"))
    for row in ("deepall_bn", "comen", "protogr")
  ]
  (task,) = runs.tasks(records)
  assert [(m.title, m.colour) for m in task.methods] == [
    ("DeepAll + BatchNorm", 0),
    ("COMEN", 1),
  ]


def test_a_method_alone_is_drawn_and_named(tmp_path):
  alone = _record(tmp_path, "deepall", arrays=_arrays(latent=False))
  sections = draw([alone], tmp_path / "report")
  assert _titles(sections) == ["Confusion matrices", "Features"]
  assert "DeepAll (seed 0)" in sections[0].pictures[0].caption
  assert "COMEN" not in sections[0].pictures[0].caption


def test_sixty_five_classes_have_no_legend_but_a_word_about_it(tmp_path):
  many = _record(tmp_path, arrays=_arrays(classes=65, points=130))
  _, features, _, graph = draw([many], tmp_path / "report")
  assert "65 classes are too many" in features.pictures[0].caption
  assert "130 prototypes" in graph.pictures[0].caption


def test_only_what_was_drawn_of_other_arrays_is_drawn_again(tmp_path):
  records = _pair(tmp_path)
  draw(records, tmp_path / "report")
  drawn = sorted((tmp_path / "report").iterdir())
  dates = [path.stat().st_mtime_ns for path in drawn]
  draw(records, tmp_path / "report")
  assert [path.stat().st_mtime_ns for path in drawn] == dates

  (tmp_path / "report" / "tsne-own-photo.png").write_bytes(b"cut off")
  confusion = tmp_path / "report" / "confusion-own-photo.png"
  gallery = tmp_path / "report" / "latent-own-photo-COMEN.png"
  before = confusion.read_bytes(), gallery.read_bytes()
  deepall = records[1].folder / "analysis.npz"
  np.savez(deepall, **_arrays(latent=False, seed=5))
  draw(records, tmp_path / "report")
  assert confusion.read_bytes() != before[0]
  assert gallery.read_bytes() == before[1]
  with Image.open(tmp_path / "report" / "tsne-own-photo.png") as image:
    image.load()


def test_names_of_targets_become_names_of_files_of_their_own():
  assert files.slug("tsne", "digits_dg", "mnist_m") == (
    "tsne-digits_dg-mnist_m"
  )
  odd = [files.slug("tsne", name) for name in ("a b", "a_b", "a/b", "é")]
  assert len(set(odd)) == 4
  assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in odd)


def test_of_several_sizes_that_of_the_sources_is_drawn(tmp_path):
  records = [
    _record(tmp_path, num_domains=m, arrays=_arrays()) for m in (1, 2, 3, 4)
  ]
  (task,) = runs.tasks(records)
  assert [m.num_domains for m in task.methods] == [2]


def test_runs_on_other_data_are_not_mixed(tmp_path):
  records = [
    _record(tmp_path, seed=s, epochs=4 + (s == 0), log=_log(2, 1))
    for s in range(3)
  ]
  (task,) = runs.tasks(records)
  assert task.methods[0].logs == tuple(
    r.folder / "metrics.jsonl" for r in records[1:]
  )


def test_curves_are_of_the_epochs_that_all_seeds_have(tmp_path):
  path = tmp_path / "metrics.jsonl"
  path.write_text(_log(4, 3, 2, 1) + '{"kind": "ep')  # Cut off by a kill.
  one = curves.read(path)
  path.write_text(_log(6, 5, 4, 3, 2, 1))
  other = curves.read(path)
  loss = curves.series([one, other], "loss")
  np.testing.assert_array_equal(loss.epochs, [1, 2, 3, 4])
  np.testing.assert_array_equal(loss.values, [[4, 3, 2, 1], [6, 5, 4, 3]])
  target = curves.series([one], "target_accuracy")
  np.testing.assert_array_equal(target.epochs, [3, 4])
  np.testing.assert_allclose(target.values, [[0.1, 0.05]])
  assert not len(curves.series([one], "loss_cls").epochs)
  assert curves.stages(one) == [("discover", 1, 2), ("encode", 3, 4)]


def test_a_log_broken_in_the_middle_is_an_error(tmp_path):
  path = tmp_path / "metrics.jsonl"
  path.write_text('{"kind": "ep\n' + _log(2, 1))
  with pytest.raises(ValueError):
    curves.read(path)


def test_the_target_never_looks_like_a_rule_of_selection(tmp_path):
  (tmp_path / "log").write_text(_log(4, 3, 2, 1))
  log = [curves.read(tmp_path / "log")]
  figure = curves.figure([curves.Runs("DeepAll", 0, log)], theme.LIGHT)
  styles = {
    line.get_label(): line.get_linestyle() for line in figure.axes[1].lines
  }
  assert styles == {
    "DeepAll, source validation": "-",
    "DeepAll, target (not used for selection)": "--",
  }


def test_prototypes_by_domain_and_by_class():
  # Two domains of three classes: node m * 3 + k, affinity 10 i + j.
  index = np.arange(6)
  arrays = {
    "affinity": 10 * index[:, None] + index[None, :],
    "prototypes_seen": np.array([[True, True, True], [True, False, True]]),
  }
  by_domain, by_class = prototypes.orders(2, 3)
  np.testing.assert_array_equal(by_domain, [0, 1, 2, 3, 4, 5])
  np.testing.assert_array_equal(by_class, [0, 3, 1, 4, 2, 5])
  matrix = prototypes.ordered(arrays, by_class)
  np.testing.assert_array_equal(matrix.data[0], [0, 3, 1, 4, 2, 5])
  np.testing.assert_array_equal(matrix.data[:, 0], [0, 30, 10, 40, 20, 50])
  # Domain 1 has never seen class 1: node 4, fourth in this order.
  hidden = np.zeros((6, 6), bool)
  hidden[3, :] = hidden[:, 3] = True
  np.testing.assert_array_equal(matrix.mask, hidden)


def test_prototypes_that_are_all_unseen_or_unconnected_are_drawn():
  for seen in (np.zeros((2, 3), bool), np.ones((2, 3), bool)):
    arrays = _arrays() | {"affinity": np.zeros((6, 6)), "prototypes_seen": seen}
    figure = prototypes.figure(arrays, theme.LIGHT)
    assert len(figure.axes) == 3  # Two orders and a colour bar.


def test_points_are_half_target_and_repeat(monkeypatch):
  monkeypatch.setattr(tsne, "MAX_POINTS", 16)
  arrays = _arrays(points=60)
  points = tsne.embed("COMEN", arrays)
  assert points.is_target.sum() == (~points.is_target).sum() == 8
  assert points.places.shape == (16, 2)
  again = tsne.embed("COMEN", arrays)
  np.testing.assert_array_equal(points.places, again.places)


def test_a_latent_domain_without_images_has_nothing_in_bold():
  arrays = _arrays() | {"contingency": np.zeros((1, 3), int)}
  (row,) = gallery.contingency(arrays)
  assert not any(cell.bold for cell in row)
