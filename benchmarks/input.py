"""Compares our input with a PyTorch DataLoader, on PACS at 224 pixels.

  pip install -r requirements-bench.txt
  python -m benchmarks.input --data_dir D --out results/input.json

D holds pacs.zip (or pacs/). Both inputs take turns in one run. The result has
medians over the rounds and ratios within a round, because machines are shared
and noisy.
"""

import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time
import zipfile

import jax
import numpy as np
import torch
from PIL import Image, ImageEnhance

from comen_jax import sharding
from comen_jax.data import batches, registry
from comen_jax.data.benchmarks import BENCHMARKS
from comen_jax.data.ingest import archive
from comen_jax.data.views import make_views

SIZE, STORE = 224, 256
BATCH = 128


class Pictures(torch.utils.data.Dataset):
  """The usual way: a worker decodes and resizes (or augments) with Pillow."""

  def __init__(self, paths: list[pathlib.Path], augment: bool):
    self.paths, self.augment = paths, augment

  def __len__(self) -> int:
    return len(self.paths)

  def __getitem__(self, index: int) -> torch.Tensor:
    with Image.open(self.paths[index]) as file:
      image = file.convert("RGB")
    if self.augment:
      image = _augmented(image, np.random.default_rng())
    else:
      image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(image))


def _augmented(image: Image.Image, rng: np.random.Generator) -> Image.Image:
  """Crops, flips and changes the colours (not the hue) at random."""
  width, height = image.size
  area, ratio = rng.uniform(0.8, 1.0), np.exp(rng.uniform(-0.28, 0.28))
  w = min(width, round(np.sqrt(area * width * height * ratio)))
  h = min(height, round(np.sqrt(area * width * height / ratio)))
  left, top = rng.integers(width - w + 1), rng.integers(height - h + 1)
  box = (left, top, left + w, top + h)
  image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box)
  if rng.random() < 0.5:
    image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
  for change in ("Brightness", "Contrast", "Color"):
    enhance = getattr(ImageEnhance, change)(image)
    image = enhance.enhance(rng.uniform(0.6, 1.4))
  return image


def torch_epoch(paths: list[pathlib.Path], augment: bool) -> float:
  """Measures images per second of one epoch, without the start of workers."""
  loader = torch.utils.data.DataLoader(
    Pictures(paths, augment),
    batch_size=BATCH,
    shuffle=True,
    num_workers=2,
    drop_last=True,
    persistent_workers=True,
    multiprocessing_context="spawn",  # With jax, a fork may hang.
  )
  next(iter(loader))  # Starts the workers.
  start, count = time.perf_counter(), 0
  for batch in loader:
    count += len(batch)
  return count / (time.perf_counter() - start)


def our_epoch(dataset, rows, places, epoch: int, view=None) -> float:
  """Measures images per second of gather and transfer, and of `view`."""
  start, count, last = time.perf_counter(), 0, None
  for batch in batches.train_batches(
    dataset, rows, batch_size=BATCH, seed=0, epoch=epoch, sharding=places.rows
  ):
    last = batch.image
    if view:
      last = view(jax.random.key(count), last)
    last.block_until_ready()
    count += len(batch.label)
  return count / (time.perf_counter() - start)


def blocked_share(dataset, rows, places, steps: int) -> float:
  """Measures the median share of a step that the host waits for a batch.

  The step trains the digits network on eight images of 224 pixels. A real step
  on photos takes longer, so the share is an upper bound.
  """
  import optax

  from comen_jax.nn.registry import build

  model = build("digits_cnn", num_classes=7, norm="batch")
  views = make_views("imagenet", "none", SIZE)
  image = np.zeros((1, SIZE, SIZE, 3), np.float32)
  variables = model.init(jax.random.key(0), image, train=False)

  @jax.jit
  def step(variables, batch):
    def loss(params):
      out, updated = model.apply(
        {**variables, "params": params},
        views.evaluate(batch.image),
        train=True,
        mutable=["batch_stats"],
      )
      losses = optax.softmax_cross_entropy_with_integer_labels(
        out.logits, batch.label
      )
      return losses.mean(), updated

    grads, updated = jax.grad(loss, has_aux=True)(variables["params"])
    params = jax.tree.map(lambda p, g: p - 1e-3 * g, variables["params"], grads)
    return {"params": params, **updated}

  shares, epoch = [], 0
  while len(shares) < steps + 1:
    feed = batches.train_batches(
      dataset, rows, batch_size=8, seed=0, epoch=epoch, sharding=places.rows
    )
    epoch += 1
    while len(shares) < steps + 1:
      start = time.perf_counter()
      batch = next(feed, None)
      if batch is None:
        break
      ready = time.perf_counter()
      variables = jax.block_until_ready(step(variables, batch))
      shares.append((ready - start) / (time.perf_counter() - start))
  return statistics.median(shares[1:])  # The first step compiles.


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--data_dir", required=True, help="folder with pacs.zip or pacs/"
  )
  parser.add_argument(
    "--rounds", type=int, default=5, help="number of rounds of both inputs"
  )
  parser.add_argument(
    "--steps", type=int, default=100, help="steps to measure waiting in"
  )
  parser.add_argument(
    "--out", type=pathlib.Path, help="JSON file for the result"
  )
  args = parser.parse_args()
  with tempfile.TemporaryDirectory() as scratch:
    os.environ["COMEN_JAX_CACHE"] = scratch  # Decoding is timed, so start cold.
    start = time.perf_counter()
    dataset = registry.load("pacs", args.data_dir, STORE)
    decoding = time.perf_counter() - start
    start = time.perf_counter()
    registry.load("pacs", args.data_dir, STORE)
    again = time.perf_counter() - start
    paths = _unpacked(args.data_dir, pathlib.Path(scratch))
    report = _measure(args, dataset, paths)
  seconds = {name: len(paths) / report[name] for name in ("torch", "ours")}
  report |= {
    "pictures": len(paths),
    "seconds_of_first_start": decoding,
    "seconds_of_second_start": again,
    "epochs_until_paid": decoding / (seconds["torch"] - seconds["ours"]),
  }
  print(json.dumps(report, indent=2))
  if args.out:
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(report, indent=2) + "\n")


def _measure(args, dataset, paths) -> dict[str, float]:
  places = sharding.make()
  rows = np.arange(len(dataset.labels))
  recipe = {"crop_scale": (0.8, 1.0), "flip": 0.5, "jitter": 0.4}
  view = jax.jit(make_views("imagenet", recipe, SIZE).train)
  our_epoch(dataset, rows, places, 0, view)  # Compiles.
  found: dict[str, list[float]] = {}
  for number in range(args.rounds):
    contestants = {
      "torch": lambda: torch_epoch(paths, False),
      "ours": lambda n=number: our_epoch(dataset, rows, places, n),
      "torch_augmented": lambda: torch_epoch(paths, True),
      "ours_augmented": lambda n=number: our_epoch(
        dataset, rows, places, n, view
      ),
    }
    for name, measure in contestants.items():
      found.setdefault(name, []).append(measure())
      print(
        f"round {number} {name}: {found[name][-1]:.0f} images/s", flush=True
      )
  ratio = lambda a, b: statistics.median(
    x / y for x, y in zip(found[a], found[b])
  )
  return {
    **{name: statistics.median(values) for name, values in found.items()},
    "ratio": ratio("ours", "torch"),
    "ratio_augmented": ratio("ours_augmented", "torch_augmented"),
    "blocked_share": blocked_share(dataset, rows, places, args.steps),
  }


def _unpacked(data_dir: str, scratch: pathlib.Path) -> list[pathlib.Path]:
  """Unpacks the same images as files, for the DataLoader."""
  source = archive.find(data_dir, BENCHMARKS["pacs"].archives, "pacs")
  folder = source.path
  if folder.is_file():
    with zipfile.ZipFile(folder) as z:
      z.extractall(scratch / "pictures")
    folder = scratch / "pictures"
  return sorted(p for p in folder.rglob("*") if p.suffix in (".jpg", ".png"))


if __name__ == "__main__":
  main()
