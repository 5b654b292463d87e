"""A bar that counts images."""

import terminals

from comen_jax.terminal import counting, screen


def test_a_terminal_shows_the_count(monkeypatch):
  terminal = terminals.use(monkeypatch, 80)
  with counting.bar("copying", 300) as count:
    count(299)
    count(1)
  drawn = [line for line in terminal.lines() if line.startswith("copying")]
  assert "300/300 images" in drawn[-1] and len(drawn[-1]) <= 80


def test_no_terminal_and_no_label_mean_no_bar(monkeypatch, capsys):
  with counting.bar("copying", 3) as count:
    count(3)
  assert capsys.readouterr() == ("", "")
  terminal = terminals.use(monkeypatch, 80)
  with counting.bar("", 3) as count:
    count(3)
  assert terminal.getvalue() == ""


def test_a_bar_below_bars_is_not_shown(monkeypatch):
  terminal = terminals.use(monkeypatch, 80)
  with counting.bar("outer", 2), counting.bar("inner", 2) as count:
    count(1)
    assert screen.has_bars()
  assert not screen.has_bars()
  assert "outer" in terminal.getvalue() and "inner" not in terminal.getvalue()
