"""Progress of a run, with and without a terminal."""

import io
import sys

import pytest

from comen_jax.methods.base import Stage
from comen_jax.run import console, plan


def nothing(*_):
  raise AssertionError("nothing is trained here")


STAGES = (Stage("warmup", 2, nothing), Stage("encode", 1, nothing, nothing))
RECORD = {"loss": 0.25, "val_accuracy": 0.5, "seconds": 3.0}


class Terminal(io.StringIO):
  def isatty(self) -> bool:
    return True


def train(units):
  """Shows two steps of every epoch, as training does."""
  progress = console.Progress(units, steps_per_epoch=2, every=1)
  with progress:
    for unit in units:
      history = []
      for _ in range(0 if unit.epoch is None else 2):
        history.append({"loss": 0.75})
        progress.step(unit, history)
      progress.unit_done(unit, RECORD)
  return progress


@pytest.mark.parametrize("done", [0, 1])
def test_a_terminal_has_a_bar_for_each_stage(done, monkeypatch):
  terminal = Terminal()
  monkeypatch.setattr(sys, "stderr", terminal)
  train(plan.units(STAGES)[done:])
  shown = terminal.getvalue()
  # A resumed stage starts where it was stopped.
  assert f"| {2 * done}/4 [" in shown and "| 4/4 [" in shown
  assert "encode" in shown and "| 2/2 [" in shown
  assert "loss 0.250  val 0.500" in shown


def test_without_a_terminal_there_is_a_line_for_each_epoch(capsys):
  train(plan.units(STAGES))
  out, err = capsys.readouterr()
  lines = out.splitlines()
  starts = ["warmup epoch 1/2  ", "warmup epoch 2/2  ", "encode epoch 1/1  "]
  assert [line[:18] for line in lines] == starts
  assert "loss 0.250  val 0.500  3.0 s, ETA 00:00" in lines[-1]
  assert err == ""


def test_the_bar_is_closed_when_training_fails(monkeypatch):
  monkeypatch.setattr(sys, "stderr", Terminal())
  unit = plan.units(STAGES)[0]
  progress = console.Progress([unit], steps_per_epoch=2, every=1)
  with pytest.raises(RuntimeError), progress:
    progress.step(unit, [{"loss": 1.0}])
    raise RuntimeError
  assert progress._bar.disable


def test_a_listener_hears_epochs_steps_and_warnings(monkeypatch):
  heard = []
  monkeypatch.setattr(console, "_listeners", [])
  monkeypatch.setattr(console, "_STEP_SECONDS", -1.0)
  console.listen(lambda *news: heard.append(news))
  train(plan.units(STAGES))
  console.warn("so-so")
  assert heard[0] == ("step", "warmup loss 0.750", 0.5 / 3)
  assert heard[2][0] == "epoch" and heard[2][2] == 1 / 3
  assert heard[2][1].startswith("warmup epoch 1/2  loss 0.250  val 0.500")
  assert [kind for kind, *_ in heard] == [*["step", "step", "epoch"] * 3,
                                          "warning"]  # fmt: skip
  assert heard[-1] == ("warning", "so-so", 0.0)
  assert heard[-2][2] == 1.0
