"""Names of figures' files."""

import re

from comen_jax.report.plots import files


def test_names_of_targets_become_names_of_files_of_their_own():
  assert files.slug("tsne", "digits_dg", "mnist_m") == (
    "tsne-digits_dg-mnist_m"
  )
  odd = [files.slug("tsne", name) for name in ("a b", "a_b", "a/b", "é")]
  assert len(set(odd)) == 4
  assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in odd)
