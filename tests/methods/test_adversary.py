"""The gradient of an adversary: clipped, then weighted, and reversed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from comen_jax.methods import adversary


@pytest.mark.parametrize("size", [0.2, 5.0])
def test_the_norm_is_clipped_before_it_is_weighted(size):
  weight, norm = 0.25, 0.5
  back = np.float32([[1, -2, 0], [0, 4, 2]])
  back *= size / np.linalg.norm(back)
  hidden = lambda x: (back * adversary.hide(x, weight, norm)).sum()
  got = jax.grad(hidden)(jnp.ones((2, 3)))
  # w min(|g|, norm), in the opposite direction.
  want = -weight * min(size, norm) * back / size
  np.testing.assert_allclose(got, want, rtol=1e-5)


def test_features_keep_their_value():
  x = jnp.arange(6.0).reshape(2, 3)
  np.testing.assert_array_equal(adversary.hide(x, 0.5, 0.1), x)
