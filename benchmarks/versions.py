"""Steps of another checkout beside those of this one.

  python -m benchmarks.versions --before FOLDER --out results/versions.json

FOLDER is a clone of this repository at another commit. Both run in processes of
their own, alternately. A ratio above 1 means that a step of this checkout takes
longer.
"""

import pathlib

from benchmarks import steps
from benchmarks.alternate import How, Worker, alternate
from benchmarks.made import ROOT
from benchmarks.tables import Table, render
from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import write_json
from comen_jax.run.provenance import commit

_MODULE = "benchmarks.jax_steps"
_ROWS = ("digits/deepall", "digits/deepall_bn", "digits/encode")


def main(argv: list[str] | None = None) -> None:
  args = _parse(argv)
  if not (args.before / "benchmarks" / "jax_steps.py").exists():
    raise UserError(f"--before={args.before}: there is no checkout of ours")
  folders = {"before": args.before.absolute(), "now": ROOT}
  table = Table("milliseconds per step", _rows(folders, args.rows, args.rounds))
  print(render(table))
  if args.out:
    commits = {name: commit(folder) for name, folder in folders.items()}
    record = {"machine": steps.machine(), "commits": commits}
    write_json(args.out, record | {table.title: table.rows})


def _rows(
  folders: dict[str, pathlib.Path], names: list[str], rounds: int
) -> list[dict]:
  """One row per step: times of both checkouts, and their ratio."""
  rows = []
  with (
    Worker(_MODULE, folder=folders["before"]) as before,
    Worker(_MODULE, folder=folders["now"]) as now,
  ):
    for name in names:
      workers = {"before": before, "now": now}
      for worker in workers.values():
        worker.prepare(name)
      times = alternate(
        {
          # Bound as defaults: a loop's variables change.
          version: lambda count, worker=worker, name=name: worker.run(
            name, count
          )
          for version, worker in workers.items()
        },
        How(rounds=rounds),
      )
      rows.append(
        {
          "step": name,
          **{version: 1000 * times.median(version) for version in workers},
          "ratio": times.ratio("now", "before"),
          "rounds": [times.seconds[version] for version in workers],
        }
      )
  return rows


def _parse(argv: list[str] | None):
  parser = Parser(
    prog="python -m benchmarks.versions", description=__doc__.splitlines()[0]
  )
  parser.add_argument(
    "--before", type=pathlib.Path, required=True, help="the other checkout"
  )
  parser.add_argument(
    "--rows", nargs="+", default=list(_ROWS), help="steps, as network/row"
  )
  parser.add_argument("--rounds", type=int, default=9, help="number of rounds")
  parser.add_argument("--out", type=pathlib.Path, help="JSON file to write")
  return parser.parse_args(argv)


if __name__ == "__main__":
  with command_line("stopped"):
    main()
