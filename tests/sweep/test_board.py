"""Bars of the runs that are trained at a time."""

import pytest
import terminals

from comen_jax.sweep.board import Board


def show(board):
  with board:
    board.begin(0, "first")
    board.begin(1, "second[red]")
    board.news(1, "second[red]", "step", "train 1/2  loss .750", 0.25)
    board.news(0, "first", "epoch", "train epoch 1/2  val 50.0 %", 0.5)
    board.news(0, "first", "warning", "so-so", 0.0)
    board.end(0)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_terminal_has_a_bar_for_each_job_and_one_for_all(width, monkeypatch):
  terminal = terminals.use(monkeypatch, width)
  show(Board(2, 3))
  lines = terminal.lines()
  assert all(len(line) <= width for line in lines)
  last = lambda name: [s for s in lines if s.startswith(name)][-1]
  assert " 50 %" in last("first ")
  assert any(" 50 %  train epoch 1/2" in line for line in lines)
  assert " 25 %  train 1/2  loss .750" in last("second[red] ")
  # One has ended, and a quarter of another is done.
  assert " 42 %  1/3, " in last("all runs ")
  assert lines.count("WARNING: first: so-so") == 1


def test_without_a_terminal_there_are_lines_for_epochs(capsys):
  show(Board(2, 3))
  out, err = capsys.readouterr()
  line = "first: train epoch 1/2  val 50.0 %\n"
  assert out == line + "WARNING: first: so-so\n"
  assert err == ""
