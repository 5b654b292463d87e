"""Runs as training leaves them, without the minutes of training."""

import hashlib
import pathlib

import jax
import numpy as np
from PIL import Image

from comen_jax.data.dataset import Dataset
from comen_jax.experiment import build
from comen_jax.run import analysis
from comen_jax.run.checkpointing import Checkpoints
from comen_jax.run.workdir import Workdir

CLASSES = ("ant", "bee", "cat", "dog")


def made_run(config, path: pathlib.Path):
  """A finished run's folder -> its experiment and the chosen state.

  The second of three epochs is the chosen one.
  """
  dataset = _dataset(config.store_size)
  experiment = build(config, dataset)
  split = experiment.split
  run = Workdir(str(path), config.to_dict(), {"target": split.target})
  run.resume(0, 0, tensorboard=False)
  checkpoints = Checkpoints(run.checkpoints)
  states = []
  for unit, val in enumerate((0.5, 0.9, 0.7)):
    scores = {"val_accuracy": val, "candidate": True}
    run.log({"unit": unit, "stage": "x", "epoch": unit + 1, **scores})
    states.append(_random_state(experiment, seed=unit))
    checkpoints.save(unit + 1, states[-1], val)
  checkpoints.close()
  analysis.save(run.path / "analysis.npz", {"class_names": np.array(CLASSES)})
  run.finish({"measured": {"target": split.target}, "provenance": {}})
  return experiment, states[1]


def _dataset(size: int) -> Dataset:
  """Noise of any brightness and contrast, so that styles differ."""
  rng = np.random.default_rng(0)
  numbers = np.arange(256)
  images = rng.normal(0, rng.uniform(5, 80, 256), (size, size, 3, 256))
  images += rng.uniform(0, 255, (3, 256))
  return Dataset(
    name="made",
    images=np.clip(images, 0, 255).astype(np.uint8).transpose(3, 0, 1, 2),
    labels=(numbers % len(CLASSES)).astype(np.int32),
    domains=(numbers // 64).astype(np.int32),
    splits=(numbers % 8 == 7).astype(np.uint8),
    class_names=CLASSES,
    domain_names=("p", "q", "r", "s"),
    manifest="0" * 64,
    default_target="s",
  )


def _random_state(experiment, seed: int):
  """What no network is born with, statistics included; nothing is compiled."""
  rng = np.random.default_rng(seed)

  def leaf(path, like):
    if like.dtype != np.float32:
      return np.zeros(like.shape, like.dtype)
    values = 0.05 * rng.standard_normal(like.shape, np.float32)
    if path[-1] in map(jax.tree_util.DictKey, ("scale", "var", "std")):
      values = 1 + np.abs(values)
    return values

  like = jax.eval_shape(experiment.init)
  state = jax.tree_util.tree_map_with_path(leaf, like)
  return jax.device_put(state, experiment.shardings.replicated)


def save_rows(experiment, rows, folder: pathlib.Path) -> list[str]:
  """Pictures of the data set as files, lossless -> their paths."""
  folder.mkdir(parents=True)
  paths = [str(folder / f"{n:03}.png") for n in range(len(rows))]
  for path, row in zip(paths, rows):
    Image.fromarray(experiment.dataset.images[row]).save(path)
  return paths


def fingerprint(folder: pathlib.Path) -> dict[str, tuple]:
  """Changes with whatever is written, added or removed."""
  return {
    str(p): (p.stat().st_mtime_ns, p.is_file() and
             hashlib.sha256(p.read_bytes()).hexdigest())
    for p in sorted([folder, *folder.rglob("*")])
  }  # fmt: skip
