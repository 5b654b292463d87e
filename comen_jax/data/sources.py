"""The source images as a method may see them: without domain labels.

Only a method that declares it (`Method.domain_labels`) gets domain labels.
"""

from collections.abc import Iterator

import jax
import numpy as np

from comen_jax.data import batches
from comen_jax.data.dataset import Dataset, Split


class Sources:
  """Rows and classes of the mixed sources.

  Attributes:
    train_rows: int64 [N], rows to train on.
    val_rows: int64 [V], rows for validation.
  """

  def __init__(
    self,
    dataset: Dataset,
    split: Split,
    batch_size: int,
    sharding: jax.sharding.Sharding,
    domain_labels: bool = False,
  ):
    self.train_rows, self.val_rows = split.train_rows, split.val_rows
    self._dataset = dataset
    self._batch_size = batch_size
    self._sharding = sharding
    self._domain_labels = domain_labels

  @property
  def rows(self) -> np.ndarray:
    """All source rows, sorted."""
    return np.union1d(self.train_rows, self.val_rows)

  def labels(self, rows: np.ndarray) -> np.ndarray:
    """Returns the classes int32 [n] of these rows."""
    return self._dataset.labels[rows]

  def true_domains(self, rows: np.ndarray) -> np.ndarray:
    """Returns the true domains int32 [n] of these rows, numbered from 0."""
    if not self._domain_labels:
      raise ValueError("the method does not declare that it uses domain labels")
    known = np.unique(self._dataset.domains[self.rows])
    return np.searchsorted(known, self._dataset.domains[rows]).astype(np.int32)

  def batches(self, rows: np.ndarray) -> Iterator[batches.Batch]:
    """Yields these rows in order; the last batch is padded and masked."""
    return batches.eval_batches(
      self._dataset, rows, batch_size=self._batch_size, sharding=self._sharding
    )
