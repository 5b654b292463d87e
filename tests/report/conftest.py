"""Small figures, for time's sake."""

import pytest

from comen_jax.report.plots import theme


@pytest.fixture(scope="module", autouse=True)
def coarse():
  """Draws with a quarter of the resolution."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(theme, "DPI", 50)
    yield
