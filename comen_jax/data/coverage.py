"""Finds classes that the target has but no source, and what they cost."""

import math

import numpy as np

from comen_jax.data.dataset import Dataset, leave_one_out

_NAMED = 5


def warnings(dataset: Dataset) -> list[str]:
  """Returns one line for each possible target that has unseen classes."""
  # With a default, such as `test` beside `train`, no other target is meant.
  targets = (dataset.default_target,) if dataset.default_target else ()
  lines = (warning(dataset, t) for t in targets or dataset.domain_names)
  return [line for line in lines if line]


def warning(dataset: Dataset, target: str) -> str:
  """Names the classes of the target that no source trains, or returns "".

  Args:
    dataset: the data set.
    target: name of the target domain.
  """
  split = leave_one_out(dataset, target)
  trained = dataset.labels[split.train_rows]
  labels = dataset.labels[split.target_rows]
  unseen = labels[~np.isin(labels, trained)]
  if not len(unseen):
    return ""
  names = [dataset.class_names[label] for label in np.unique(unseen)]
  more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
  # Rounded down: the bound of 1,999 of 2,000 images is not 100 %.
  bound = math.floor(1000 * (1 - len(unseen) / len(labels))) / 10
  return (
    f"with target {target}, no source has training images of"
    f" {', '.join(names[:_NAMED])}{more}: {len(unseen):,} of the"
    f" {len(labels):,} target images cannot be classified, so accuracy is at"
    f" most {bound:.1f} %"
  )
