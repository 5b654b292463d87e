"""A data set as the package sees it: rows, and what is known of them."""

import dataclasses

import numpy as np

from comen_jax.errors import UserError

TRAIN, VAL = 0, 1


@dataclasses.dataclass(frozen=True)
class Dataset:
  """Decoded pictures, one row each, memory-mapped.

  Attributes:
    name: what results call it ("mini_digits", "digits_dg", ...).
    images: uint8 [N, S, S, 3].
    labels: int32 [N], index in `class_names`.
    domains: int32 [N], index in `domain_names`. For leaving one domain out and
      for evaluation only; training never sees them.
    splits: uint8 [N], `TRAIN` or `VAL`.
    manifest: hash of names, labels, domains, splits and pictures.
    default_target: the domain tested when the config names none;
      "": it must name one.
    notice: one line for the user, or "".
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


@dataclasses.dataclass(frozen=True)
class Split:
  """Rows of one leave-one-domain-out task; each array is int64 and sorted."""

  sources: tuple[str, ...]
  target: str
  train_rows: np.ndarray
  val_rows: np.ndarray
  target_rows: np.ndarray


def leave_one_out(dataset: Dataset, target: str) -> Split:
  """Sources are all other domains; the target is tested on all its images.

  Args:
    dataset: the data set.
    target: a domain's name, or "" for the data set's default.
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
