"""Time of a training step of every method against DeepAll with the same norm.

  python -m benchmarks.methods --out results/methods.json --page docs/methods.md

All methods of the registry, and two augmentations with DeepAll, alternate in
one process, on the digits CNN and noise. What a stage prepares is prepared for
real, but not timed. Progress goes to stderr, the table of docs/methods.md goes
to stdout.
"""

import json
import pathlib
import shlex
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks import made, methods_table, page
from benchmarks.alternate import How, Run, Times, alternate, say
from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import write_json, write_text
from comen_jax.variants import VARIANTS

_RECORD = pathlib.Path("results/methods.json")
_QUICK = How(rounds=2, turn=0.1)
_BATCH = made.NETWORKS["digits"].batch
# Norm -> DeepAll with that norm. SDNorm has none; BatchNorm is its nearest.
BASELINES = {"none": "deepall", "batch": "deepall_bn", "sdnorm": "deepall_bn"}


def main(argv: list[str] | None = None) -> None:
  args = _parse(argv)
  if args.table:
    record = _read(args.out or _RECORD)
  else:
    record = {"command": _command(args), **measure(args.how, args.batch)}
    if args.out:
      args.out.parent.mkdir(parents=True, exist_ok=True)
      write_json(args.out, record)
  table = methods_table.render(record)
  print(table)
  if args.page:
    text = args.page.read_text()
    write_text(args.page, page.put(table, text, methods_table.BEGIN))


def measure(how: How, batch: int) -> dict[str, Any]:
  """Times a step of every stage of the methods that `how` wants.

  Args:
    how: number of rounds and length of a turn. Baselines are always measured.
    batch: number of images per batch.
  """
  # Imported here, because they import jax.
  from benchmarks.steps import machine
  from comen_jax.methods.registry import METHODS
  from comen_jax.process.allocator import keep_memory

  keep_memory()  # As each of our commands does.
  needed = set(BASELINES.values())
  names = [
    name
    for name in (*METHODS, *methods_table.AUGMENTED)
    if how.wants(name) or name in needed
  ]
  contestants: dict[str, Run] = {}
  norms: dict[str, str] = {}
  for name in names:
    for stage, norm, run in _stages(name, batch):
      contestants[f"{name}/{stage}"], norms[name] = run, norm
    say(f"{name} prepared")
  times = alternate(contestants, how)
  return {
    "machine": machine(),
    "batch": batch,
    "methods": {name: _of(name, norms[name], times) for name in names},
  }


def _stages(name: str, batch: int) -> Iterator[tuple[str, str, Run]]:
  """Yields the name of each stage of a row, its norm, and its step."""
  import jax
  import jax.numpy as jnp

  from benchmarks import jax_steps

  sizes = made.NETWORKS["digits"]._replace(batch=batch)
  method, augment = name, "none"
  if name in methods_table.AUGMENTED:
    settings = VARIANTS[name].settings
    method, augment = settings["method"], settings["augment"]
  experiment = jax_steps.make_experiment(sizes, method, augment=augment)
  state = experiment.init()
  for number, stage in enumerate(experiment.method.stages):
    if stage.prepare:
      state, _ = experiment.prepare(state, number)
    # A copy: a step reuses the memory of its state.
    run = jax_steps.training(
      experiment,
      jax.tree.map(jnp.copy, state),
      experiment.train_steps[number],
    )
    run(1)  # Compiles.
    yield stage.name, experiment.setting["norm"], partial(_seconds, run)


def _seconds(run: Callable[[int], None], steps: int) -> float:
  start = time.perf_counter()
  run(steps)
  return (time.perf_counter() - start) / steps


def _of(name: str, norm: str, times: Times) -> dict[str, Any]:
  """What the record says about a method."""
  baseline = BASELINES[norm]
  stages = [key for key in times.seconds if key.split("/")[0] == name]
  return {
    "norm": norm,
    "baseline": baseline,
    "stages": {
      key.split("/")[1]: {
        "ms": 1000 * times.median(key),
        "ratio": times.ratio(key, f"{baseline}/train"),
      }
      for key in stages
    },
  }


def _read(record: pathlib.Path) -> dict[str, Any]:
  if not record.exists():
    raise UserError(
      f"--table: there is no {record}; run it without --table first"
    )
  return json.loads(record.read_text())


def _command(args) -> str:
  """The command without --out and --page, which may name paths."""
  words = ["python", "-m", "benchmarks.methods"]
  words += [f"--only={args.only}"] * bool(args.only) + ["--quick"] * args.quick
  for name, usual in (("rounds", None), ("batch", _BATCH)):
    if getattr(args, name) != usual:
      words.append(f"--{name}={getattr(args, name)}")
  return shlex.join(words)


def _parse(argv: list[str] | None):
  parser = Parser(
    prog="python -m benchmarks.methods", description=__doc__.splitlines()[0]
  )
  parser.add_argument(
    "--out", type=pathlib.Path, help="JSON record to write; it is replaced"
  )
  parser.add_argument(
    "--page",
    type=pathlib.Path,
    help="markdown page whose table is replaced, such as docs/methods.md",
  )
  parser.add_argument(
    "--table",
    action="store_true",
    help=f"only print the table of the record --out (default: {_RECORD})",
  )
  parser.add_argument("--rounds", type=int, help="number of rounds")
  parser.add_argument(
    "--batch",
    type=int,
    default=_BATCH,
    help="images per batch (default: %(default)s)",
  )
  parser.add_argument(
    "--quick", action="store_true", help="few and short rounds, for trying"
  )
  parser.add_argument(
    "--only",
    default="",
    metavar="NAME",
    help="measure only methods whose name contains NAME, and DeepAll",
  )
  args = parser.parse_args(argv)
  for name in ("rounds", "batch"):
    value = getattr(args, name)
    if value is not None and value < 1:
      raise UserError(f"--{name}={value}: give 1 or more")
  how = _QUICK if args.quick else How()
  rounds = how.rounds if args.rounds is None else args.rounds
  args.how = how._replace(rounds=rounds, only=args.only)
  return args


if __name__ == "__main__":
  with command_line("stopped"):
    main()
