"""The source images as a method may see them: no domain labels in sight."""

from collections.abc import Iterator

import jax
import numpy as np

from comen_jax.data import batches
from comen_jax.data.dataset import Dataset, Split


class Sources:
  """Rows and classes of the mixed sources.

  Attributes:
    train_rows: int64 [N], rows to learn from.
    val_rows: int64 [V], rows kept for choosing the epoch.
  """

  def __init__(
    self,
    dataset: Dataset,
    split: Split,
    batch_size: int,
    sharding: jax.sharding.Sharding,
  ):
    self.train_rows, self.val_rows = split.train_rows, split.val_rows
    self._dataset = dataset
    self._batch_size = batch_size
    self._sharding = sharding

  @property
  def rows(self) -> np.ndarray:
    """All of them, sorted."""
    return np.union1d(self.train_rows, self.val_rows)

  def labels(self, rows: np.ndarray) -> np.ndarray:
    """Classes [n] of those rows."""
    return self._dataset.labels[rows]

  def batches(self, rows: np.ndarray) -> Iterator[batches.Batch]:
    """Those rows in order; the last batch padded and masked."""
    return batches.eval_batches(
      self._dataset, rows, batch_size=self._batch_size, sharding=self._sharding
    )
