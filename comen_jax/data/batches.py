"""Puts rows as batches on the devices. A batch is one gather: no workers."""

import collections
import functools
import itertools
from collections.abc import Iterable, Iterator

import flax.struct
import jax
import numpy as np

from comen_jax import stopping
from comen_jax.data.dataset import Dataset


@flax.struct.dataclass
class Batch:
  """B images.

  Attributes:
    image: uint8 [B, S, S, 3]; once the step has applied its view, float32
      [B, H, W, 3], normalised.
    label: int32 [B], classes.
    row: int32 [B], rows of the data set.
    mask: float32 [B], 0 for rows that only pad the batch, else 1.
    stored: uint8 [B, S, S, 3], what `image` was before a training view was
      applied; None if none was.
  """

  image: jax.Array
  label: jax.Array
  row: jax.Array
  mask: jax.Array
  stored: jax.Array | None = None


def train_batches(
  dataset: Dataset,
  rows: np.ndarray,
  *,
  batch_size: int,
  seed: int,
  epoch: int,
  sharding: jax.sharding.Sharding,
  first: int = 0,
) -> Iterator[Batch]:
  """Yields the batches of one epoch in random order, from number `first` on.

  The order depends only on (seed, epoch). The last incomplete batch is dropped.
  """
  order = np.random.default_rng((seed, epoch)).permutation(rows)
  steps = len(rows) // batch_size
  chunks = order[: steps * batch_size].reshape(steps, batch_size)
  return _prefetch(
    _put(dataset, chunk, batch_size, sharding) for chunk in chunks[first:]
  )


def eval_batches(
  dataset: Dataset,
  rows: np.ndarray,
  *,
  batch_size: int,
  sharding: jax.sharding.Sharding,
) -> Iterator[Batch]:
  """Yields all `rows` in order; the last batch is padded and masked."""
  starts = range(0, len(rows), batch_size)
  chunks = (rows[start : start + batch_size] for start in starts)
  return _prefetch(
    _put(dataset, chunk, batch_size, sharding) for chunk in chunks
  )


def _put(
  dataset: Dataset,
  rows: np.ndarray,
  batch_size: int,
  sharding: jax.sharding.Sharding,
) -> Batch:
  """Gathers the rows of this process's devices and puts them there."""
  padded = np.zeros(batch_size, np.int64)
  padded[: len(rows)] = rows
  mask = (np.arange(batch_size) < len(rows)).astype(np.float32)
  mine = _own(sharding, batch_size)
  local = padded[mine]
  batch = Batch(
    image=dataset.images[local],
    label=dataset.labels[local],
    row=local.astype(np.int32),
    mask=mask[mine],
  )
  return jax.tree.map(
    lambda x: jax.make_array_from_process_local_data(
      sharding, x, (batch_size, *x.shape[1:])
    ),
    batch,
  )


@functools.cache
def _own(
  sharding: jax.sharding.Sharding, batch_size: int
) -> slice | np.ndarray:
  """Says which rows of a batch live on devices of this process, in order.

  On a TPU slice the mesh follows the wires between the chips, not the order of
  the processes.
  """
  if sharding.is_fully_addressable:
    return slice(None)
  numbers = np.arange(batch_size)
  indices = sharding.addressable_devices_indices_map((batch_size,)).values()
  return np.unique(np.concatenate([numbers[index] for index in indices]))


def _prefetch(batches: Iterable[Batch], ahead: int = 2) -> Iterator[Batch]:
  """Keeps `ahead` batches in transfer while the device computes.

  Steps are dispatched asynchronously, so the device does not wait for a gather.
  Between two batches a run may be stopped.
  """
  batches = iter(batches)
  waiting = collections.deque(itertools.islice(batches, ahead))
  while waiting:
    stopping.check()
    yield waiting.popleft()
    waiting.extend(itertools.islice(batches, 1))
