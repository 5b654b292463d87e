"""Compiles every training step for TPU v5e slices, without the hardware.

  make pod

or, in an environment with requirements-pod.txt:

  python -m benchmarks.pod --out results/pod.json

Each step is compiled ahead of time for slices of 1 to 256 chips, once with 128
images per chip and once with 256 images in all. Progress goes to stderr, the
tables of docs/scale.md go to stdout. The record is written after every step;
a run that was stopped goes on where it was.
"""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
import time
from typing import Any

from benchmarks import pod_table
from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import write_json, write_text

PER_CHIP = 128  # Images, as many as the paper has in a batch.
GLOBAL = 256  # Images: the smallest batch that gives each chip of a pod one.
# Network -> (method, stage). A config with pretrained weights has no warm-up.
STEPS = {
  "resnet18": (
    ("comen", "encode"), ("comen", "discover"), ("deepall", "train"),
  ),
  "digits": (
    ("comen", "encode"), ("comen", "discover"), ("comen", "warmup"),
    ("deepall", "train"),
  ),
}  # fmt: skip
CHIPS = (256, 1, 64, 16, 4)  # The ends first: they show most.
# Without these, libtpu looks for a TPU and asks the cloud about it.
_NO_TPU = {
  "JAX_PLATFORMS": "cpu",
  "TPU_SKIP_MDS_QUERY": "1",
  "TPU_WORKER_HOSTNAMES": "localhost",
  "TPU_ACCELERATOR_TYPE": "v5litepod-4",
  "TPU_STDERR_LOG_LEVEL": "3",
  "TPU_MIN_LOG_LEVEL": "3",
}


def main(argv: list[str] | None = None) -> None:
  args = _parse(argv)
  record = _read(args.out)
  if not args.table:
    _compile(record, args)
  tables = pod_table.render(record)
  print(tables)
  if args.page:
    write_text(args.page, pod_table.put(tables, args.page.read_text()))


def _compile(record: dict[str, Any], args) -> None:
  """Adds the steps that the record lacks."""
  if not importlib.util.find_spec("libtpu"):
    raise UserError(
      "libtpu is not installed: make pod, or pip install -r"
      " requirements-pod.txt in an environment of its own"
    )
  os.environ.update(_NO_TPU)
  # Imported after the environment is set, because they import jax.
  from benchmarks import pod_steps
  from benchmarks.steps import machine

  cases = [
    case
    for chips in CHIPS
    for case in _cases(pod_steps.Case, chips)
    if args.only in case.name
  ]
  todo = [case for case in cases if case.name not in record["steps"]]
  if len(cases) > len(todo):
    _say(f"{len(cases) - len(todo)} of {len(cases)} steps are in the record")
  record["machine"] = {**machine(), "libtpu": _version("libtpu")}
  _lower_for_gpu(record, pod_steps, cases)
  _write(args.out, record)
  for number, case in enumerate(todo, 1):
    start = time.monotonic()
    _say(f"{number} of {len(todo)}: {case.name}")
    found = _measure(pod_steps, case)
    found["commit"] = record["machine"]["commit"]
    record["steps"][case.name] = found
    _say(f"  {time.monotonic() - start:.0f} s")
    _write(args.out, record)


def _measure(pod_steps, case) -> dict[str, Any]:
  """Measures a step; a step that does not fit into memory is a result too."""
  from jax.errors import JaxRuntimeError

  try:
    found = pod_steps.measure(case)
  except JaxRuntimeError as e:
    if "RESOURCE_EXHAUSTED" not in str(e):
      raise
    return {**case._asdict(), "error": str(e).splitlines()[0]}
  for defect in found["defects"]:
    _say(f"  a defect: {defect}")
  return found


def _lower_for_gpu(record: dict[str, Any], pod_steps, cases: list) -> None:
  """Adds each step that the record lacks, whatever its slice and batch."""
  lowered = record.setdefault("lowered_for_cuda", {})
  for case in cases:
    name = case.name.removesuffix(f"/{case.batch}/{case.chips}")
    if name not in lowered:
      lowered[name] = pod_steps.lower_for_gpu(case)
      _say(f"{name} lowered for CUDA")


def _cases(make, chips: int) -> list:
  """The steps for a slice."""
  return [
    make(network, method, stage, batch, chips, images)
    for batch, images in (("per_chip", PER_CHIP * chips), ("global", GLOBAL))
    for network, steps in STEPS.items()
    for method, stage in steps
  ]


def _read(out: pathlib.Path) -> dict[str, Any]:
  if not out.exists():
    return {"steps": {}}
  return json.loads(out.read_text())


def _write(out: pathlib.Path, record: dict[str, Any]) -> None:
  out.parent.mkdir(parents=True, exist_ok=True)
  write_json(out, record)


def _version(package: str) -> str:
  return importlib.metadata.version(package)


def _say(message: str) -> None:
  print(message, file=sys.stderr, flush=True)


def _parse(argv: list[str] | None):
  parser = Parser(
    prog="python -m benchmarks.pod", description=__doc__.splitlines()[0]
  )
  parser.add_argument(
    "--out",
    type=pathlib.Path,
    default=pathlib.Path("results/pod.json"),
    help="JSON record, which is read and extended (default: %(default)s)",
  )
  parser.add_argument(
    "--only",
    default="",
    metavar="NAME",
    help="compile only the steps whose name contains NAME, such as"
    " resnet18/encode/per_chip/256",
  )
  parser.add_argument(
    "--page",
    type=pathlib.Path,
    help="markdown page whose tables are replaced, such as docs/scale.md",
  )
  parser.add_argument(
    "--table", action="store_true", help="print the tables of the record only"
  )
  return parser.parse_args(argv)


if __name__ == "__main__":
  with command_line("stopped; the same command goes on"):
    main()
