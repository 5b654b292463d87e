"""Predicts class and latent domain of images with a finished run.

    python -m comen_jax.predict --run runs/first photos/

Predictions go to standard output, everything else to standard error.
"""

import argparse
import sys

from comen_jax.errors import Parser, UserError, command_line


def main(argv: list[str]) -> int:
  """Runs the command -> exit code, 1 if an image was skipped."""
  args = _parser().parse_intermixed_args(argv)
  if not (args.images or args.export):
    raise UserError(
      "no images: name files, folders or patterns, or give --export"
    )
  if args.batch_size < 1:
    raise UserError(f"--batch_size={args.batch_size}: give 1 or more")
  # Imported here: jax takes seconds, and --help or a wrong flag needs none.
  from comen_jax.predict import answers

  return answers.give(args)


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="python -m comen_jax.predict",
    description="Predicts class and latent domain of images with a finished"
    " run. The network is that of the epoch which source validation chose.",
    epilog="An image that cannot be read is named and skipped; the exit code"
    " is then 1. Bad flags, a run that is not finished, and a folder or"
    " pattern without images end with exit code 2.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "images",
    nargs="*",
    help="files; folders (with their sub-folders); quoted patterns such as"
    ' "a/**/*.jpg"; @list.txt for a text file with one of these per line; - for'
    " such lines on standard input",
  )
  parser.add_argument("--run", required=True, help="folder of the run")
  form = parser.add_mutually_exclusive_group()
  form.add_argument(
    "--json",
    dest="format",
    action="store_const",
    const="json",
    help="print a JSON array with the probabilities of all classes",
  )
  form.add_argument(
    "--csv",
    dest="format",
    action="store_const",
    const="csv",
    help="print CSV (d0, d1, ... are the latent domains)",
  )
  parser.add_argument(
    "--export",
    metavar="FILE",
    help="write the network as a jax.export file that needs no comen_jax;"
    " FILE.json gets the class names. No images are needed",
  )
  parser.add_argument(
    "--batch_size",
    type=int,
    default=64,
    help="greatest number of images at once, over all devices (default: 64)",
  )
  parser.set_defaults(format="table")
  return parser


if __name__ == "__main__":
  with command_line("stopped"):
    sys.exit(main(sys.argv[1:]))
