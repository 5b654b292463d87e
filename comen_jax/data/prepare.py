"""Prepares a data set, checks every image and counts the images.

    python -m comen_jax.data.prepare --dataset pacs --data_dir D

Training prepares a data set by itself. This command tells you beforehand
whether the files are complete. It lists all files that cannot be used, and
warns of classes that a target has but no source.
"""

import argparse
import sys
import time

from comen_jax.data import coverage, registry
from comen_jax.data.benchmarks import BENCHMARKS, counts
from comen_jax.data.ingest.problems import BadFilesError
from comen_jax.errors import Parser, UserError, command_line


def main(argv: list[str]) -> None:
  args = _parser().parse_args(argv)
  spec = BENCHMARKS.get(args.dataset)
  size = args.size or (spec.store_size if spec else 32)
  start = time.monotonic()
  try:
    found = registry.load_prepared(args.dataset, args.data_dir, size)
  except BadFilesError as e:
    raise UserError(e.listing()) from e
  seconds = time.monotonic() - start
  dataset = found.dataset
  published = (
    (spec.published_domains, spec.published_cells) if spec else ({}, {})
  )
  print(counts.report(dataset, *published))
  if dataset.notice:
    print(f"Note: {dataset.notice}.")
  for warning in coverage.warnings(dataset):
    print(f"Warning: {warning}.")
  print(
    f"{len(dataset.labels):,} images, {len(dataset.domain_names)} domains,"
    f" {len(dataset.class_names)} classes, all decoded to {size}x{size};"
    f" {seconds:.1f} s"
  )
  print(f"manifest  {dataset.manifest}")
  print(f"prepared  {found.folder}")
  print(f"rows      {found.rows}")


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="python -m comen_jax.data.prepare",
    description="Prepare a data set, check every image and count the images.",
    epilog="All output goes to $COMEN_JAX_CACHE (default ~/.cache/comen_jax).",
    allow_abbrev=False,
  )
  parser.add_argument(
    "--dataset",
    required=True,
    choices=[*BENCHMARKS, "folder"],
    help="name of the data set; folder: your own images",
  )
  parser.add_argument(
    "--data_dir",
    required=True,
    help="folder that holds the published folder or zip; for --dataset folder,"
    " the folder or zip of your images",
  )
  parser.add_argument(
    "--size",
    type=int,
    default=0,
    help="side of the stored squares in pixels, the config's store_size"
    " (default: 32 for digits_dg and folder, else 256)",
  )
  return parser


if __name__ == "__main__":
  with command_line("stopped; no half-prepared data is left"):
    main(sys.argv[1:])
