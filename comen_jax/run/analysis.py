"""Arrays of a finished run, so that a report needs neither model nor data."""

import pathlib
from collections.abc import Callable

import numpy as np
from PIL import Image

from comen_jax.data.dataset import Dataset, Split
from comen_jax.files import draft
from comen_jax.metrics import probabilities
from comen_jax.nn.backbone import Outputs

MAX_FEATURES = 2000
_THUMBNAILS = 24  # Per latent domain.
_THUMBNAIL_SIZE = 64  # Pixels at most.


def analyse(
  outputs: Callable[[np.ndarray], Outputs],
  dataset: Dataset,
  split: Split,
  described: dict[str, np.ndarray],
) -> dict[str, np.ndarray]:
  """Computes the arrays of `analysis.npz`.

  Args:
    outputs: rows [n] -> outputs [n, ...] of the chosen network, on the
      evaluation view.
    dataset: all rows of the data set.
    split: rows of sources and target.
    described: arrays of the method itself. `domains` [N], if it is there, is
      the latent domain of each source row that the last stage trained with.

  Returns:
    described: all of these arrays.
    confusion: [K, K], target images by true class and prediction.
    features, class, domain, prediction, probs: of at most 2,000 images, half
      target and half source validation; probs are the latent domains' [n, M],
      absent without SDNorm.
    thumbnails, thumbnail_probs: [M, 24, s, s, 3] and [M, 24], the most certain
      source images of each latent domain.
    contingency: [M, domains], source images, training and validation, by
      latent and true domain; latent domains are `domains`, or those of the
      chosen network without it.
    class_names, domain_names, target: names.
  """
  target = outputs(split.target_rows)
  prediction = target.logits.argmax(axis=1)
  classes = len(dataset.class_names)
  confusion = np.zeros((classes, classes), np.int64)
  np.add.at(confusion, (dataset.labels[split.target_rows], prediction), 1)

  val = outputs(split.val_rows)
  chosen = _spread(len(split.target_rows)), _spread(len(split.val_rows))
  parts = list(zip((target, val), (split.target_rows, split.val_rows), chosen))
  rows = np.concatenate([rows[some] for _, rows, some in parts])
  pick = lambda field: np.concatenate(
    [getattr(out, field)[some] for out, _, some in parts]
  )
  arrays = {
    "confusion": confusion,
    "features": pick("features"),
    "class": dataset.labels[rows],
    "domain": dataset.domains[rows],
    "prediction": pick("logits").argmax(axis=1),
    "class_names": np.array(dataset.class_names),
    "domain_names": np.array(dataset.domain_names),
    "target": np.array(split.target),
  }
  if target.domain_logits is not None:
    arrays["probs"] = probabilities(pick("domain_logits"))
    train = outputs(split.train_rows)
    logits = np.concatenate([train.domain_logits, val.domain_logits])
    arrays |= _latent(train.domain_logits, dataset, split)
    arrays["contingency"] = _contingency(logits, dataset, split, described)
  return arrays | described


def save(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
  """Writes the arrays; a reader sees the old file or the new one."""
  with draft(path) as place:
    np.savez_compressed(place, **arrays)


def _latent(
  logits: np.ndarray, dataset: Dataset, split: Split
) -> dict[str, np.ndarray]:
  """The most certain training images; `logits` [n, M] are of F_d."""
  rows = split.train_rows
  probs = probabilities(logits)
  found = probs.argmax(axis=1)
  # The most certain images all have probability 1; log-odds still differ.
  ranked = np.sort(logits, axis=1)
  margin = ranked[:, -1] - ranked[:, -2] if len(ranked[0]) > 1 else ranked[:, 0]
  num_domains = probs.shape[1]
  size = min(_THUMBNAIL_SIZE, dataset.images.shape[1])
  thumbnails = np.zeros((num_domains, _THUMBNAILS, size, size, 3), np.uint8)
  certainty = np.zeros((num_domains, _THUMBNAILS))
  for m in range(num_domains):
    own = np.flatnonzero(found == m)
    best = own[np.argsort(-margin[own], kind="stable")][:_THUMBNAILS]
    certainty[m, : len(best)] = probs[best, m]
    for n, row in enumerate(rows[best]):
      picture = Image.fromarray(dataset.images[row])
      thumbnails[m, n] = np.asarray(picture.resize((size, size)))
  return {"thumbnails": thumbnails, "thumbnail_probs": certainty}


def _contingency(
  logits: np.ndarray,
  dataset: Dataset,
  split: Split,
  described: dict[str, np.ndarray],
) -> np.ndarray:
  """Counts the images that `domain_sizes` in result.json counts."""
  rows = np.concatenate([split.train_rows, split.val_rows])
  found = logits.argmax(axis=1)
  if "domains" in described and described["domains"][rows].min() >= 0:
    found = described["domains"][rows]
  counts = np.zeros((logits.shape[1], len(dataset.domain_names)), np.int64)
  np.add.at(counts, (found, dataset.domains[rows]), 1)
  return counts


def _spread(count: int) -> np.ndarray:
  """At most `MAX_FEATURES` / 2 indices, spread evenly over `count`."""
  return np.unique(
    np.linspace(0, count - 1, min(count, MAX_FEATURES // 2)).astype(int)
  )
