"""Contestants alternate; medians and ratios are per round."""

import time

import pytest

from benchmarks.alternate import How, Times, Worker, alternate
from comen_jax.errors import UserError


def test_every_second_round_goes_backwards():
  order = []

  def contestant(name):
    return lambda steps: order.append((name, steps)) or 0.5

  names = "abc"
  alternate({n: contestant(n) for n in names}, How(rounds=3, turn=2.0))
  first, *rounds = [order[i : i + 3] for i in range(0, len(order), 3)]
  assert first == [(n, 1) for n in names]  # Finds the number of steps.
  assert rounds == [
    [(n, 4) for n in names],
    [(n, 4) for n in reversed(names)],
    [(n, 4) for n in names],
  ]


def test_a_turn_has_at_least_one_step():
  steps = []
  alternate({"a": lambda n: steps.append(n) or 30.0}, How(rounds=1, turn=1.0))
  assert steps == [1, 1]


def test_ratio_is_the_median_of_the_ratios_of_rounds():
  # The machine is three times slower in the second round.
  times = Times({"a": [1.0, 3.0, 1.1], "b": [2.0, 6.0, 2.0]})
  assert times.median("a") == 1.1
  assert times.best("b") == 2.0
  assert times.ratio("a", "b") == 0.5


def test_worker_prepares_once_and_runs_when_told(tmp_path):
  (tmp_path / "fake_contestants.py").write_text(
    "import time\n"
    "from benchmarks.worker import Contestant\n"
    "def prepare(name):\n"
    "  print('libraries may print')\n"
    "  run = lambda steps: time.sleep(0.02 * steps)\n"
    "  return Contestant(run, {'name': name})\n"
  )
  with Worker("fake_contestants", {"PYTHONPATH": str(tmp_path)}) as worker:
    assert worker.prepare("x") == {"name": "x"}
    assert 0.02 <= worker.run("x", 3) < 5
    time.sleep(0.2)
    assert worker.idle_cpu_share() < 0.5


def test_worker_names_what_failed(tmp_path):
  with (
    Worker("no_such_module", {"PYTHONPATH": str(tmp_path)}) as worker,
    pytest.raises(UserError, match="no_such_module failed at prepare x: Modul"),
  ):
    worker.prepare("x")
