"""Figures of a run."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from comen_jax.run import figures


def _arrays(names):
  classes = len(names)
  return {
    "confusion": np.eye(classes, dtype=int) * 3,
    "class_names": np.array(names),
    "domain_names": np.array(["ink", "photo"]),
    "contingency": np.array([[1200, 3], [0, 0]]),
    "thumbnails": np.full((2, 24, 8, 8, 3), 200, np.uint8),
    "thumbnail_probs": np.array([[1.0] * 24, [0.0] * 24]),
  }


@pytest.mark.parametrize(
  "names",
  ["0123456789", ["$a$", "$b_", "<c>"], [f"name{n}" for n in range(21)]],
)
def test_a_run_has_its_figures(tmp_path, names):
  arrays = _arrays(list(names))
  figures.confusion(tmp_path / "confusion.png", arrays, "$title$")
  figures.latent_domains(tmp_path / "latent.png", arrays)
  for path in tmp_path.iterdir():
    with Image.open(path) as image:
      image.load()


def test_numbers_are_shares_of_the_true_class():
  axes = Figure().add_subplot()
  counts = np.array([[3, 1, 0], [0, 0, 0], [1, 0, 999]])
  figures.draw_confusion(axes, counts, np.array(["a", "b", "c"]))
  found = {t.get_position(): t.get_text() for t in axes.texts}
  assert found == {(0, 0): "75", (1, 0): "25", (2, 2): "100"}


def test_a_latent_domain_shows_no_more_images_than_it_has():
  arrays = _arrays(["a"])
  arrays["thumbnail_probs"][1, :3] = 0.9
  axes = Figure().add_subplot()
  figures.draw_latent_domain(axes, arrays, 1, columns=12)
  alpha = np.asarray(axes.images[0].get_array())[..., 3]
  assert alpha.shape == (2 * 9 - 1, 12 * 9 - 1)  # A gap of one between them.
  assert (alpha > 0).sum() == 3 * 8 * 8
