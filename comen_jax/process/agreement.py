"""What the processes of a run must agree on, so that none waits for another.

With one process, all of this does nothing.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from comen_jax.errors import BusyError, UserError

Value = TypeVar("Value")
Tree = TypeVar("Tree")


def from_first(function: Callable[[], Value]) -> Value:
  """Calls `function` on process 0 -> its value, which is JSON, on all.

  If it raises UserError, all processes raise it. Use it for what depends on
  files: they may change between two reads, or be cached by a host.
  """
  if jax.process_count() == 1:
    return function()
  answer = None
  if jax.process_index() == 0:
    try:
      answer = {"value": function()}
    except UserError as e:
      answer = _described(e)
  answer = _share(answer, source=0)
  if "error" in answer:
    _raise(answer)
  return answer["value"]


@contextlib.contextmanager
def alike() -> Iterator[None]:
  """If a process raises UserError in the block, all raise it at its end.

  Use it for what may fail on one machine only, such as a file that it has not.
  Nothing in the block may wait for other processes.
  """
  if jax.process_count() == 1:
    yield
    return
  error = None
  try:
    yield
  except UserError as e:
    error = _described(e)
  failed = multihost_utils.process_allgather(np.int32(error is not None))
  if np.any(failed):
    _raise(_share(error, source=int(np.argmax(failed))))


def same(tree: Tree) -> Tree:
  """Returns process 0's values of a tree of host arrays, on all processes.

  Equal inputs may give results that differ in the last bit on another machine.
  """
  if jax.process_count() == 1:
    return tree
  return multihost_utils.broadcast_one_to_all(tree)


def place(tree: Tree, sharding: jax.sharding.Sharding) -> Tree:
  """Puts a tree on all devices of all processes, with process 0's values."""
  if jax.process_count() == 1:
    return jax.device_put(tree, sharding)

  def put(value: Any) -> jax.Array:
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
      return jax.device_put(value, sharding)  # It is on all of them already.
    value = np.asarray(multihost_utils.broadcast_one_to_all(value))
    return jax.make_array_from_callback(
      value.shape, sharding, lambda index: value[index]
    )

  return jax.tree.map(put, tree)


def _described(error: UserError) -> dict[str, Any]:
  return {"error": str(error), "busy": isinstance(error, BusyError)}


def _raise(answer: dict[str, Any]) -> None:
  raise (BusyError if answer["busy"] else UserError)(answer["error"])


def _share(value: Any, source: int) -> Any:
  """Sends a JSON value from process `source` to all."""
  mine = jax.process_index() == source
  data = np.frombuffer(json.dumps(value).encode(), np.uint8)
  size = multihost_utils.broadcast_one_to_all(np.int32(len(data)), mine)
  buffer = np.zeros(int(size), np.uint8)
  if mine:
    buffer[:] = data
  shared = multihost_utils.broadcast_one_to_all(buffer, mine)
  return json.loads(np.asarray(shared).tobytes())
