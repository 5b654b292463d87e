"""Features in two dimensions."""

import numpy as np

from comen_jax.report.plots import tsne

from ..helpers import arrays


def test_points_are_half_target_and_repeat(monkeypatch):
  monkeypatch.setattr(tsne, "MAX_POINTS", 16)
  made = arrays(points=60)
  points = tsne.embed("COMEN", made)
  assert points.is_target.sum() == (~points.is_target).sum() == 8
  assert points.places.shape == (16, 2)
  again = tsne.embed("COMEN", made)
  np.testing.assert_array_equal(points.places, again.places)
