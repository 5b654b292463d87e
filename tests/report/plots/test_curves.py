"""Training curves."""

import numpy as np
import pytest

from comen_jax.report.plots import curves, theme

from ..helpers import log


def test_curves_are_of_the_epochs_that_all_seeds_have(tmp_path):
  path = tmp_path / "metrics.jsonl"
  path.write_text(log(4, 3, 2, 1) + '{"kind": "ep')  # Cut off by a kill.
  one = curves.read(path)
  path.write_text(log(6, 5, 4, 3, 2, 1))
  other = curves.read(path)
  loss = curves.series([one, other], "loss")
  np.testing.assert_array_equal(loss.epochs, [1, 2, 3, 4])
  np.testing.assert_array_equal(loss.values, [[4, 3, 2, 1], [6, 5, 4, 3]])
  target = curves.series([one], "target_accuracy")
  np.testing.assert_array_equal(target.epochs, [3, 4])
  np.testing.assert_allclose(target.values, [[0.1, 0.05]])
  assert not len(curves.series([one], "loss_cls").epochs)
  assert curves.stages(one) == [("discover", 1, 2), ("encode", 3, 4)]


@pytest.mark.parametrize(
  "line",
  [
    '{"kind": "ep',
    "[1]",
    "\0\xff",
    '{"kind": "epoch", "epoch": 1}',
    '{"kind": "epoch", "stage": "x", "epoch": "1"}',
    '{"kind": "epoch", "stage": "x", "epoch": 1, "loss": "low"}',
  ],
)
def test_a_damaged_log_is_one_line_that_names_it(tmp_path, line):
  path = tmp_path / "metrics.jsonl"
  path.write_text(log(2, 1) + line + "\n" + log(2, 1))
  told = []
  assert curves.read(path, told.append) == []
  (text,) = told
  assert f"{path}:4" in text and "\n" not in text


def test_the_target_never_looks_like_a_rule_of_selection(tmp_path):
  (tmp_path / "log").write_text(log(4, 3, 2, 1))
  epochs = [curves.read(tmp_path / "log")]
  figure = curves.accuracy([curves.Runs("DeepAll", 0, epochs)], theme.LIGHT)
  (axes,) = figure.axes
  styles = {line.get_label(): line.get_linestyle() for line in axes.lines}
  assert styles == {
    "DeepAll, source validation": "-",
    "DeepAll, target (not used for selection)": "--",
  }
