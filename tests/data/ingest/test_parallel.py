"""Threads work in order and hold a bounded amount."""

import threading
import time

import pytest

from comen_jax.data.ingest import parallel


def test_results_come_in_order_and_few_wait():
  started = []

  def function(item):
    started.append(item)
    return item * item

  most = 0
  results = parallel.in_order(function, range(200), "x", window=8)
  for number, result in enumerate(results):
    assert result == number * number
    time.sleep(0.0005)  # A slow reader: the threads run ahead if they may.
    most = max(most, len(started) - number)
  assert number == 199
  assert most <= 8 + 1


def test_a_window_of_one_is_enough():
  assert list(parallel.in_order(str, range(3), "x", window=1)) == list("012")


def test_the_first_error_in_order_is_raised_and_the_rest_is_cancelled():
  done = []

  def function(item):
    if item in (40, 60):
      raise ValueError(f"item {item}")
    done.append(item)

  with pytest.raises(ValueError, match="item 40"):
    list(parallel.in_order(function, range(100_000), "x"))
  assert len(done) < 10_000


def test_threads_hold_no_more_than_the_budget():
  budget = parallel.Budget(10)
  held, most, lock = [], [], threading.Lock()

  def function(amount):
    with budget.hold(amount):
      with lock:
        held.append(amount)
        most.append(list(held))
      time.sleep(0.001)
      with lock:
        held.remove(amount)

  threads = [
    threading.Thread(target=function, args=(amount,))
    for amount in [4, 3, 99, 6, 2, 1, 50, 4, 4, 4] * 3
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(timeout=20)
  assert len(most) == 30
  for together in most:
    assert sum(together) <= 10 or len(together) == 1
  assert max(map(len, most)) > 1


def test_an_error_gives_the_budget_back():
  budget = parallel.Budget(1)
  with pytest.raises(ValueError), budget.hold(1):
    raise ValueError
  with budget.hold(1):
    pass
