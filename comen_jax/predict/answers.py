"""Answers a command line of predict: loads the network, predicts, writes."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from comen_jax import process, sharding
from comen_jax.data.ingest import pictures
from comen_jax.errors import UserError, printable
from comen_jax.predict import export, paths, trained
from comen_jax.predict.formats import FORMATS, Header, Prediction
from comen_jax.terminal import screen


def give(args: argparse.Namespace) -> int:
  """Predicts, exports or both -> exit code, 1 if an image was skipped."""
  place = export.check_place(args.export) if args.export else None
  names = paths.pictures(args.images)
  process.start()
  shardings = sharding.make()
  network = trained.load(args.run, shardings.replicated)
  if place:
    beside = export.export(network, place)
    _tell(f"wrote {place} ({place.stat().st_size / 1e6:.1f} MB) and {beside}")
  if not names:
    return 0
  bad: list[UserError] = []

  def skip(error: UserError) -> None:
    _tell(f"skipped: {printable(str(error))}")
    bad.append(error)

  rows = predict(network, names, args.batch_size, shardings, skip)
  header = Header(names, network.class_names, network.num_domains)
  _write(FORMATS[args.format](header, rows))
  if bad:
    _tell(f"{len(bad):,} of {len(names):,} images were skipped")
  return 1 if bad else 0


def predict(
  network: trained.Trained,
  names: Sequence[str],
  batch_size: int,
  shardings: sharding.Shardings,
  skip: Callable[[UserError], None],
) -> Iterator[Prediction]:
  """Predicts images in the order of `names`, decoding them batch by batch.

  Args:
    network: the trained network.
    names: paths of images.
    batch_size: greatest number of images that the network sees at once.
    shardings: shardings that split a batch over the devices.
    skip: called with the error of an image that cannot be predicted.
  """
  step = jax.jit(
    network.function(),
    in_shardings=(shardings.replicated, shardings.rows),
    out_shardings=shardings.replicated,
  )
  devices = shardings.mesh.size
  # All batches have one size, so that the network is compiled once.
  batch_size = -(-min(batch_size, len(names)) // devices) * devices
  batch = np.zeros((batch_size, network.size, network.size, 3), np.uint8)
  inside: list[str] = []

  def answer() -> Iterator[Prediction]:
    found = jax.device_get(step(network.state, batch))
    none = np.zeros((batch_size, 0), np.float32)
    domains = found.get("domain_probabilities", none)
    yield from map(Prediction, inside, found["probabilities"], domains)
    inside.clear()

  # On a terminal, the predictions themselves show the progress.
  label = "" if sys.stdout.isatty() else "predicting"
  squares = pictures.decode_each(names, paths.read, network.size, "", label)
  for name, square in zip(names, squares):
    if isinstance(square, UserError):
      skip(square)
      continue
    batch[len(inside)] = square
    inside.append(name)
    if len(inside) == batch_size:
      yield from answer()
  if inside:
    yield from answer()


def _tell(text: str) -> None:
  screen.write(text, "stderr")


def _write(parts: Iterator[str]) -> None:
  """Writes to standard output."""
  # A file name that is not valid text is written as its bytes.
  sys.stdout.reconfigure(errors="surrogateescape")
  try:
    for part in parts:
      sys.stdout.write(part)
    sys.stdout.flush()
  except BrokenPipeError:  # The reader, such as `| head`, has stopped.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
