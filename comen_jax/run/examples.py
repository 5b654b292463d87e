"""A few images of the target, as files: something to try `predict` on."""

import pathlib
import re

import numpy as np
from PIL import Image

from comen_jax.data.dataset import Dataset, Split

_MOST = 10
_UNSAFE = re.compile(r"[^\w.-]+")  # In the name of a file on any system.


def save(folder: pathlib.Path, dataset: Dataset, split: Split) -> None:
  """Writes one target image of each class, of at most ten classes.

  They have the size at which they are stored, so `predict` answers as the
  evaluation of the run did.
  """
  labels = dataset.labels[split.target_rows]
  classes, first = np.unique(labels, return_index=True)
  folder.mkdir(exist_ok=True)
  for label, place in zip(classes[:_MOST], first):
    name = _UNSAFE.sub("_", dataset.class_names[label])
    row = split.target_rows[place]
    Image.fromarray(dataset.images[row]).save(folder / f"{label}_{name}.png")
