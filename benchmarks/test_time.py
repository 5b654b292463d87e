"""Accuracy of finished runs with other p at test time.

  python -m benchmarks.test_time runs/trials/medium_before --out FILE.json

Each run's chosen network is tested again with p = softmax(logits / T). T = 1 is
what F_d says, a small T takes its best domain alone, and a very large T mixes
all domains equally. Nothing is trained.
"""

import pathlib
import statistics

import ml_collections

from benchmarks import steps as bench
from benchmarks.alternate import say
from benchmarks.tables import Table, render
from comen_jax import process, sharding, steps
from comen_jax.data import batches, registry
from comen_jax.data.dataset import leave_one_out
from comen_jax.errors import Parser, UserError, command_line
from comen_jax.files import read_json, write_json
from comen_jax.metrics import EvalMetrics
from comen_jax.predict import trained
from comen_jax.run import selection

TEMPERATURES = (0.1, 0.5, 1.0, 2.0, 4.0, 1e6)


def main() -> None:
  args = _parse()
  process.start()
  found = sorted(p.parent for p in args.sweep.glob("**/result.json"))
  if not found:
    raise UserError(f"{args.sweep}: there is no finished run in this folder")
  rows = []
  for run in found:
    rows += _rows(run)
    say(f"{run.name} done")
  tables = [Table("each run", rows), Table("averages", _averages(rows))]
  print(render(tables[1]))
  if args.out:
    record = {table.title: table.rows for table in tables}
    write_json(args.out, {"machine": bench.machine(), **record})


def _rows(run: pathlib.Path) -> list[dict]:
  shardings = sharding.make()
  found = trained.load(str(run), shardings.replicated)
  config = ml_collections.ConfigDict(read_json(run / "config.json"))
  dataset = registry.load(config.dataset, config.data_dir, config.store_size)
  split = leave_one_out(dataset, found.measured["target"])
  rows = []
  for temperature in TEMPERATURES:
    model = found.model.clone(test_temperature=temperature)
    step = steps.jit_eval_step(shardings, model, found.views)

    def accuracy(some, step=step):
      total = EvalMetrics.empty()
      for batch in batches.eval_batches(
        dataset, some, batch_size=config.eval_batch_size,
        sharding=shardings.rows,
      ):  # fmt: skip
        total = total.merge(step(found.state, batch))
      return 100 * selection.accuracy(total)

    rows.append(
      {
        "run": run.name,
        "temperature": temperature,
        "target": accuracy(split.target_rows),
        "source validation": accuracy(split.val_rows),
      }
    )
  return rows


def _averages(rows: list[dict]) -> list[dict]:
  return [
    {
      "temperature": temperature,
      **{
        name: statistics.fmean(
          row[name] for row in rows if row["temperature"] == temperature
        )
        for name in ("target", "source validation")
      },
    }
    for temperature in TEMPERATURES
  ]


def _parse():
  parser = Parser(
    prog="python -m benchmarks.test_time", description=__doc__.splitlines()[0]
  )
  parser.add_argument("sweep", type=pathlib.Path, help="folder of a sweep")
  parser.add_argument("--out", type=pathlib.Path, help="JSON file to write")
  return parser.parse_args()


if __name__ == "__main__":
  with command_line("stopped"):
    main()
