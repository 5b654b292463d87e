"""What the contestants of a benchmark have in common: sizes and made data."""

import importlib.util
import os
import pathlib
from typing import NamedTuple

import numpy as np

from comen_jax.data.dataset import Dataset

ROOT = pathlib.Path(__file__).parents[1]


class Network(NamedTuple):
  """A network and the batches that it is measured with.

  Attributes:
    config: name of the config that it comes from.
    size: side of the images in pixels.
    num_classes: number of classes K.
    batch: number of images per training batch.
    eval_batch: number of images per evaluation batch.
    rows: names of its rows in the table.
  """

  config: str
  size: int
  num_classes: int
  batch: int
  eval_batch: int
  rows: tuple[str, ...]


NETWORKS = {
  "digits": Network(
    "digits", 32, 10, 128, 512,
    ("deepall", "deepall_bn", "discover", "encode", "eval_bn", "eval_comen"),
  ),
  # Its own norm is BatchNorm, so that deepall is deepall_bn.
  "resnet18": Network(
    "pacs:quick", 112, 7, 32, 128,
    ("deepall", "discover", "encode", "eval_bn", "eval_comen"),
  ),
  # With the batch size of configs/pacs.py; only `prototypes` uses it.
  "resnet18_batch128": Network("pacs:quick", 112, 7, 128, 256, ("encode",)),
}  # fmt: skip
NUM_DOMAINS = 3
LEARNING_RATE = 1e-3  # Small, so that noise stays harmless over many steps.
MATMUL = 2048  # Side of the matrices that give the machine's peak.


def cores() -> int:
  """Number of cores that this process may use."""
  return len(os.sched_getaffinity(0))


def images(count: int, size: int) -> np.ndarray:
  """Makes noise, uint8 [count, size, size, 3]; it is the same every time."""
  shape = (count, size, size, 3)
  return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def dataset(pixels: np.ndarray, num_classes: int) -> Dataset:
  """Makes a data set of four domains from images; every fourth validates."""
  numbers = np.arange(len(pixels))
  return Dataset(
    name="made",
    images=pixels,
    labels=(numbers % num_classes).astype(np.int32),
    domains=(numbers * 4 // len(pixels)).astype(np.int32),
    splits=(numbers % 4 == 3).astype(np.uint8),
    class_names=tuple(map(str, range(num_classes))),
    domain_names=tuple("pqrs"),
    manifest="",
    default_target="s",
  )


def load_config(name: str):
  """Loads configs/<name>.py; <name>:<variant> as on the command line."""
  name, *variant = name.split(":")
  place = ROOT / "configs" / f"{name}.py"
  spec = importlib.util.spec_from_file_location(f"config_{name}", place)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.get_config(*variant)
