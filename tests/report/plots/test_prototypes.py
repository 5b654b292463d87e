"""The matrix of the prototype graph."""

import numpy as np

from comen_jax.report.plots import prototypes, theme

from ..helpers import arrays


def test_prototypes_by_domain_and_by_class():
  # Two domains of three classes: node m * 3 + k, affinity 10 i + j.
  index = np.arange(6)
  made = {
    "affinity": 10 * index[:, None] + index[None, :],
    "prototypes_seen": np.array([[True, True, True], [True, False, True]]),
  }
  by_domain, by_class = prototypes.orders(2, 3)
  np.testing.assert_array_equal(by_domain, [0, 1, 2, 3, 4, 5])
  np.testing.assert_array_equal(by_class, [0, 3, 1, 4, 2, 5])
  matrix = prototypes.ordered(made, by_class)
  np.testing.assert_array_equal(matrix.data[0], [0, 3, 1, 4, 2, 5])
  np.testing.assert_array_equal(matrix.data[:, 0], [0, 30, 10, 40, 20, 50])
  # Domain 1 has never seen class 1: node 4, fourth in this order.
  hidden = np.zeros((6, 6), bool)
  hidden[3, :] = hidden[:, 3] = True
  np.testing.assert_array_equal(matrix.mask, hidden)


def test_prototypes_that_are_all_unseen_or_unconnected_are_drawn():
  for seen in (np.zeros((2, 3), bool), np.ones((2, 3), bool)):
    made = arrays() | {"affinity": np.zeros((6, 6)), "prototypes_seen": seen}
    for draw in (prototypes.by_domain, prototypes.by_class):
      figure = draw(made, theme.LIGHT)
      assert len(figure.axes) == 2  # The matrix and a colour bar.
