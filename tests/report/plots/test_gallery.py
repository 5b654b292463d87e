"""Images of latent domains, and the true domains they are from."""

import numpy as np

from comen_jax.report.plots import gallery

from ..helpers import arrays


def test_a_latent_domain_without_images_has_nothing_in_bold():
  empty = arrays() | {"contingency": np.zeros((1, 3), int)}
  (row,) = gallery.contingency(empty)
  assert not any(cell.bold for cell in row)
