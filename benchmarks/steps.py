"""Speed of everything, ours beside PyTorch's: `make bench`.

  pip install -r requirements-bench.txt
  python -m benchmarks.steps --out results/steps.json

Contestants alternate in one run. Tables go to stdout as each section ends,
progress goes to stderr, and everything is in the JSON file. On two cores the
whole takes half an hour; `--quick` shows in minutes that all of it works.
"""

import importlib.metadata
import importlib.util
import pathlib
import platform
import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import (
  against_torch,
  discovery,
  epochs,
  made,
  norms,
  parts,
  prototypes,
  starts,
)
from benchmarks.alternate import How, say
from benchmarks.tables import Table, render
from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import write_json

SECTIONS: dict[str, Callable[[How], list[Table]]] = {
  "digits": partial(against_torch.measure, "digits"),
  "resnet18": partial(against_torch.measure, "resnet18"),
  "parts": parts.measure,
  "norms": norms.measure,
  "prototypes": prototypes.measure,
  "discovery": discovery.measure,
  "starts": starts.measure,
  "epochs": epochs.measure,
}
_NEED_TORCH = ("digits", "resnet18", "parts")
_QUICK = How(rounds=2, turn=0.1)


def main(argv: list[str] | None = None) -> None:
  args = _parse(argv)
  out, how = args.out, _how(args)
  if out:
    out.parent.mkdir(parents=True, exist_ok=True)
  record: dict[str, Any] = {"machine": machine(), "command": _command(args)}
  for name in args.sections:
    say(f"section {name}")
    tables = SECTIONS[name](how)
    for table in tables:
      print(render(table) + "\n", flush=True)
    record[name] = {table.title: table.rows for table in tables}
    if out:
      write_json(out, record)  # After each section: an hour may be cut short.


def machine() -> dict[str, Any]:
  """Describes the machine and the code, without any path."""
  from comen_jax.run import provenance

  facts = provenance.collect()
  del facts["command"]
  if importlib.util.find_spec("torch"):
    facts["packages"]["torch"] = importlib.metadata.version("torch")
  return {**facts, "cores": made.cores(), "cpu": _cpu()}


def _cpu() -> str:
  """Name of the processor."""
  info = pathlib.Path("/proc/cpuinfo")
  lines = info.read_text().splitlines() if info.exists() else []
  names = (
    v for k, _, v in (x.partition(":") for x in lines) if "model name" in k
  )
  return next(names, platform.processor()).strip()


def _parse(argv: list[str] | None):
  parser = Parser(
    prog="python -m benchmarks.steps", description=__doc__.splitlines()[0]
  )
  parser.add_argument(
    "--out", type=pathlib.Path, help="JSON file to write; it is replaced"
  )
  parser.add_argument(
    "--sections",
    default=",".join(SECTIONS),
    help="sections to run, separated by commas (default: all: %(default)s)",
  )
  parser.add_argument(
    "--rounds", type=int, help=f"number of rounds (default: {How().rounds})"
  )
  parser.add_argument(
    "--quick", action="store_true", help="few and short rounds, for trying"
  )
  parser.add_argument(
    "--only",
    default="",
    metavar="NAME",
    help="of the sections digits and resnet18, run only the rows whose name"
    " contains NAME, such as encode",
  )
  args = parser.parse_args(argv)
  args.sections = args.sections.split(",")
  if unknown := [s for s in args.sections if s not in SECTIONS]:
    raise UserError(
      f"--sections={unknown[0]}: choose from {', '.join(SECTIONS)}"
    )
  if args.rounds is not None and args.rounds < 1:
    raise UserError(f"--rounds={args.rounds}: give 1 or more")
  needs = [s for s in args.sections if s in _NEED_TORCH]
  if needs and not importlib.util.find_spec("torch"):
    raise UserError(
      f"section {needs[0]} needs torch: pip install -r"
      " requirements-bench.txt, or leave the section out with --sections"
    )
  return args


def _how(args) -> How:
  how = _QUICK if args.quick else How()
  rounds = how.rounds if args.rounds is None else args.rounds
  return how._replace(rounds=rounds, only=args.only)


def _command(args) -> str:
  """The command without --out, which may name a path of this machine."""
  words = ["python", "-m", "benchmarks.steps"]
  if args.sections != list(SECTIONS):
    words.append(f"--sections={','.join(args.sections)}")
  if args.rounds is not None:
    words.append(f"--rounds={args.rounds}")
  words += ["--quick"] * args.quick + [f"--only={args.only}"] * bool(args.only)
  return shlex.join(words)


if __name__ == "__main__":
  with command_line("stopped"):
    main()
