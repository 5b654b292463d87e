"""Makes tables and figures of finished runs, beside the paper's tables.

    python -m comen_jax.report W

W is the --workdir of a run or a sweep, a folder of such folders, or published
records (results*.jsonl). Neither model nor data are needed. Dots of all seeds
are drawn from the records, other figures from each run's metrics.jsonl and
analysis.npz, where they are. A file that is damaged is named, and left out.
"""

import argparse
import pathlib
import sys

from comen_jax.errors import Parser, command_line


def main(argv: list[str]) -> None:
  args = _parser().parse_args(argv)
  # Imported here: matplotlib takes a second, and --help does not need it.
  from comen_jax.report import page

  page.make(args.folders, args.out or args.folders[0] / "report")


def _parser() -> argparse.ArgumentParser:
  parser = Parser(
    prog="python -m comen_jax.report",
    description="Makes tables of finished runs beside the paper's, and figures,"
    " as a web page (index.html), Markdown (report.md) and LaTeX (report.tex).",
    epilog="Neither model nor data are needed. A run that is found twice counts"
    " once. Runs with different epochs, data or pretrained weights are in"
    " different tables.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "folders",
    metavar="W",
    nargs="+",
    type=pathlib.Path,
    help="--workdir of a run or a sweep, a folder of such folders, or published"
    " records (results*.jsonl)",
  )
  parser.add_argument(
    "--out",
    metavar="FOLDER",
    type=pathlib.Path,
    help="folder of the report (default: report/ in the first W)",
  )
  return parser


if __name__ == "__main__":
  with command_line("stopped; run the same command again for the report"):
    # Some terminals cannot show ±; they get a question mark.
    sys.stdout.reconfigure(errors="replace")
    main(sys.argv[1:])
