"""Rows to batches on the devices. No workers: a batch is one gather."""

import collections
import itertools
from collections.abc import Iterable, Iterator

import flax.struct
import jax
import numpy as np

from comen_jax.data.dataset import Dataset


@flax.struct.dataclass
class Batch:
  """B pictures. After the step's view, `image` is float, normalised.

  Attributes:
    image: uint8 [B, S, S, 3].
    label: int32 [B].
    row: int32 [B], the row of the data set.
    mask: float32 [B], 0 where a row only fills up the batch.
  """

  image: jax.Array
  label: jax.Array
  row: jax.Array
  mask: jax.Array


def train_batches(
  dataset: Dataset,
  rows: np.ndarray,
  *,
  batch_size: int,
  seed: int,
  epoch: int,
  sharding: jax.sharding.Sharding,
) -> Iterator[Batch]:
  """One epoch, in an order that depends on (seed, epoch) alone.

  The last incomplete batch is dropped.
  """
  order = np.random.default_rng((seed, epoch)).permutation(rows)
  steps = len(rows) // batch_size
  chunks = order[: steps * batch_size].reshape(steps, batch_size)
  return _prefetch(
    _put(dataset, chunk, batch_size, sharding) for chunk in chunks
  )


def eval_batches(
  dataset: Dataset,
  rows: np.ndarray,
  *,
  batch_size: int,
  sharding: jax.sharding.Sharding,
) -> Iterator[Batch]:
  """All `rows` in order, the last batch padded and masked."""
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
  """Gathers this process's rows of the batch and gives them to its devices."""
  padded = np.zeros(batch_size, np.int64)
  padded[: len(rows)] = rows
  mask = (np.arange(batch_size) < len(rows)).astype(np.float32)
  share = batch_size // jax.process_count()
  mine = slice(share * jax.process_index(), share * (jax.process_index() + 1))
  local = padded[mine]
  batch = Batch(
    image=dataset.images[local],
    label=dataset.labels[local],
    row=local.astype(np.int32),
    mask=mask[mine],
  )
  return jax.tree.map(
    lambda x: jax.make_array_from_process_local_data(sharding, x), batch
  )


def _prefetch(batches: Iterable[Batch], ahead: int = 2) -> Iterator[Batch]:
  """Keeps `ahead` batches on the way while the device computes.

  Steps are dispatched asynchronously, so gathering here costs no device time.
  """
  batches = iter(batches)
  waiting = collections.deque(itertools.islice(batches, ahead))
  while waiting:
    yield waiting.popleft()
    waiting.extend(itertools.islice(batches, 1))
