"""A data set in memory, and the rows of a leave-one-domain-out task."""

import dataclasses

import numpy as np

from comen_jax.errors import UserError

TRAIN, VAL = 0, 1


@dataclasses.dataclass(frozen=True)
class Dataset:
  """Decoded images, one per row, and what is known about each row.

  Attributes:
    name: name of the data set in results ("mini_digits", "digits_dg", ...).
    images: uint8 [N, S, S, 3], memory-mapped.
    labels: int32 [N], indices in `class_names`.
    domains: int32 [N], indices in `domain_names`. They serve to leave one
      domain out and to evaluate; training never sees them.
    splits: uint8 [N], `TRAIN` or `VAL`.
    class_names: names of the classes.
    domain_names: names of the domains.
    manifest: hash of the names, labels, domains, splits and image bytes.
    default_target: domain to test on when the config names none; "" if the
      config must name one.
    notice: one line for the user, or "".
    own: whether the images are a user's own; `name` is then that of a folder.
  """

  name: str
  images: np.ndarray
  labels: np.ndarray
  domains: np.ndarray
  splits: np.ndarray
  class_names: tuple[str, ...]
  domain_names: tuple[str, ...]
  manifest: str
  default_target: str
  notice: str = ""
  own: bool = False


@dataclasses.dataclass(frozen=True)
class Split:
  """Rows of one leave-one-domain-out task; the arrays are int64 and sorted.

  Attributes:
    sources: names of the source domains.
    target: name of the target domain.
    train_rows: source rows to train on.
    val_rows: source rows for validation.
    target_rows: all rows of the target.
  """

  sources: tuple[str, ...]
  target: str
  train_rows: np.ndarray
  val_rows: np.ndarray
  target_rows: np.ndarray


def leave_one_out(dataset: Dataset, target: str) -> Split:
  """Makes one domain the target and all others the sources.

  Args:
    dataset: the data set.
    target: name of the target domain, or "" for the data set's default.
  """
  target = target or dataset.default_target
  if not target:
    raise UserError(
      f"target is empty: name the domain of {dataset.name} to test on, one of"
      f" {', '.join(dataset.domain_names)}, with --config.target="
    )
  if target not in dataset.domain_names:
    raise UserError(
      f"target={target!r} is not a domain of {dataset.name}: choose one of"
      f" {', '.join(dataset.domain_names)}"
    )
  is_target = dataset.domains == dataset.domain_names.index(target)
  is_train = dataset.splits == TRAIN
  return Split(
    sources=tuple(d for d in dataset.domain_names if d != target),
    target=target,
    train_rows=np.flatnonzero(~is_target & is_train),
    val_rows=np.flatnonzero(~is_target & ~is_train),
    target_rows=np.flatnonzero(is_target),
  )
