"""Bars of the runs that are trained at a time."""

import io
import sys

from comen_jax.sweep.board import Board


class Terminal(io.StringIO):
  def isatty(self) -> bool:
    return True


def show(board):
  with board:
    board.begin(0, "first")
    board.begin(1, "second")
    board.news(1, "second", "step", "train loss 0.750", 0.25)
    board.news(0, "first", "epoch", "train epoch 1/2", 0.5)
    board.news(0, "first", "warning", "so-so", 0.0)
    board.end(0)


def test_a_terminal_has_a_bar_for_each_job_and_one_for_all(monkeypatch, capsys):
  terminal = Terminal()
  monkeypatch.setattr(sys, "stderr", terminal)
  show(Board(2, 3))
  shown = terminal.getvalue()
  assert "first " in shown and "50%|" in shown and "train epoch 1/2" in shown
  assert "second " in shown and "25%|" in shown and "train loss 0.750" in shown
  assert "all runs " in shown and "| 1/3 [" in shown
  assert capsys.readouterr().out == "WARNING: first: so-so\n"


def test_without_a_terminal_there_are_lines_for_epochs(capsys):
  show(Board(2, 3))
  out, err = capsys.readouterr()
  assert out == "first: train epoch 1/2\nWARNING: first: so-so\n"
  assert err == ""
