"""Progress of a run, with and without a terminal."""

import pytest
import terminals

from comen_jax.methods.base import Stage
from comen_jax.run import console, plan, progress
from comen_jax.terminal import screen


def nothing(*_):
  raise AssertionError("nothing is trained here")


STAGES = (Stage("warmup", 2, nothing), Stage("encode", 1, nothing, nothing))
RECORD = {"loss": 0.25, "loss_d": 0.7, "effective_domains": 2.5,
          "domain_agreement": 0.9, "new_metric": 0.125, "val_accuracy": 0.5,
          "seconds": 3.0}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_explained(monkeypatch):
  monkeypatch.setattr(console, "_explained", set())


def train(units, every=1):
  """Shows two steps of every epoch, as training does."""
  shown = progress.Progress(units, steps_per_epoch=2, every=every)
  with shown:
    for unit in units:
      shown.begin(unit)
      history = []
      for _ in range(0 if unit.epoch is None else 2):
        history.append({"loss": 0.75})
        shown.step(unit, history)
      shown.unit_done(unit, RECORD)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_terminal_keeps_one_line_for_each_epoch(width, monkeypatch):
  terminal = terminals.use(monkeypatch, width)
  train(plan.units(STAGES))
  lines = terminal.lines()
  epochs = [line for line in lines if "val 50.0 %" in line]
  heads = ["warmup 1/2", "warmup 2/2", "encode 1/1"]
  assert [line[:10] for line in epochs] == heads
  assert all("val 50.0 %  loss .250" in line for line in epochs)
  assert all(" 3 s" in line for line in epochs)
  assert all(len(line) <= width for line in lines)
  # A wider terminal shows more.
  assert ("new_metric" in epochs[0]) == (width >= 100)
  assert lines.count("preparing encode ...") == 1


def test_below_the_lines_is_a_bar_for_the_epoch_at_work(monkeypatch):
  terminal = terminals.use(monkeypatch, 80)
  monkeypatch.setattr(progress.Pace, "seconds_left", lambda self: 720.0)
  train(plan.units(STAGES))
  bars = [line for line in terminal.lines() if "━" in line]
  second = [line for line in bars if line.startswith("warmup 2/2 ")]
  assert any(s.endswith("  50 %  loss .750  12 min left") for s in second), bars
  assert any(line.startswith("preparing encode ") for line in bars)
  assert not screen.has_bars()


def test_a_resumed_epoch_starts_where_it_was_stopped(monkeypatch):
  terminal = terminals.use(monkeypatch, 80)
  unit = plan.units(STAGES)[0]
  with progress.Progress([unit], steps_per_epoch=4, every=1) as shown:
    shown.begin(unit, steps=3)
  assert any(" 75 %" in line for line in terminal.lines())


@pytest.mark.parametrize(("width", "words"), [(60, 2), (80, 4)])
def test_words_are_explained_once_where_they_first_appear(
  width, words, monkeypatch
):
  terminal = terminals.use(monkeypatch, width)
  train(plan.units(STAGES))
  lines = terminal.lines()
  first = next(n for n, line in enumerate(lines) if "val 50.0 %" in line)
  # What the line has no room for needs no words.
  for n, word in enumerate(("val", "domains", "agree", "loss_d")):
    places = [n for n, s in enumerate(lines) if s.startswith(f"  {word}: ")]
    assert len(places) == (n < words)
    assert all(place < first for place in places)
    assert (f"{word} " in lines[first]) == (n < words)


def test_without_a_terminal_there_is_a_line_for_each_epoch(capsys):
  train(plan.units(STAGES))
  out, err = capsys.readouterr()
  lines = [line for line in out.splitlines() if " epoch " in line]
  starts = ["warmup epoch 1/2  ", "warmup epoch 2/2  ", "encode epoch 1/1  "]
  assert [line[:18] for line in lines] == starts
  assert lines[-1].endswith("3 s") and "  val 50.0 %  loss .250  " in lines[-1]
  assert out.count("agree: ") == 1 and "\x1b" not in out
  assert err == ""


def test_a_terminal_that_gets_no_lines_gets_no_bar(monkeypatch, capsys):
  """With `| tee`, they would be written into each other."""
  terminal = terminals.use(monkeypatch, 80, ["stderr"])
  train(plan.units(STAGES))
  assert terminal.getvalue() == ""
  assert "warmup epoch 1/2  val 50.0 %" in capsys.readouterr().out


def test_ctrl_c_closes_the_bar_before_anything_is_printed(monkeypatch):
  terminal = terminals.use(monkeypatch, 80)
  unit = plan.units(STAGES)[0]
  shown = progress.Progress([unit], steps_per_epoch=2, every=1)
  with pytest.raises(KeyboardInterrupt), shown:
    shown.begin(unit)
    shown.step(unit, [{"loss": 1.0}])
    raise KeyboardInterrupt
  assert not screen.has_bars()
  assert terminal.getvalue().endswith("\x1b[2K")  # The bar's line is empty.


def test_the_first_step_does_not_count_as_pace(monkeypatch):
  """It compiles: the time left would be hours."""
  now = [0.0]
  monkeypatch.setattr("comen_jax.terminal.pace.time.monotonic", lambda: now[0])
  terminal = terminals.use(monkeypatch, 80)
  (unit, *_) = units = plan.units(STAGES)
  with progress.Progress(units, steps_per_epoch=20, every=1) as shown:
    shown.begin(unit)
    for seconds, steps in ((500, 1), (1, 2)):
      now[0] += seconds
      shown.step(unit, [{"loss": 1.0}] * steps)
  # 58 of 60 steps are left.
  assert any("58 s left" in line for line in terminal.lines())
  assert "min left" not in terminal.getvalue()


def test_a_listener_hears_epochs_steps_and_warnings(monkeypatch, capsys):
  heard = []
  monkeypatch.setattr(console, "_listeners", [])
  monkeypatch.setattr(progress, "_STEP_SECONDS", -1.0)
  console.listen(lambda *news: heard.append(news))
  train(plan.units(STAGES))
  console.warn("so-so")
  assert heard[0] == ("step", "warmup 1/2  loss .750", 0.5 / 3)
  assert heard[2][0] == "epoch" and heard[2][2] == 1 / 3
  assert heard[2][1].startswith("warmup epoch 1/2  val 50.0 %  loss .250")
  assert [kind for kind, *_ in heard] == [*["step", "step", "epoch"] * 3,
                                          "warning"]  # fmt: skip
  assert heard[-1] == ("warning", "so-so", 0.0)
  assert heard[-2][2] == 1.0
