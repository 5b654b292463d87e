"""A whole sweep: lists the runs, checks them, trains them, sums up."""

import pathlib
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from comen_jax import config as config_lib
from comen_jax import process
from comen_jax.data import registry
from comen_jax.data.dataset import leave_one_out
from comen_jax.errors import UserError
from comen_jax.process import agreement
from comen_jax.run import console, next_commands
from comen_jax.run.workdir import check_config, read_result
from comen_jax.sweep import grid, jobs, one_by_one, shares
from comen_jax.sweep.ledger import Ledger
from comen_jax.sweep.tally import Tally, place


class Wanted(NamedTuple):
  """The flags of the command, as they were given.

  `given` has the keys of the config that have a flag, with their values.
  """

  workdir: str
  targets: str
  seeds: str
  methods: str
  num_domains: str
  shard: str
  jobs: int
  dry_run: bool
  given: Mapping[str, Any]


def train_runs(config: ConfigDict, wanted: Wanted) -> None:
  """Trains the runs that are left; exits with code 1 if a run failed."""
  own_shares = []
  if wanted.jobs > 1:
    if jax.distributed.is_initialized():
      raise UserError(
        f"--jobs={wanted.jobs}: several processes train one run at a time; give"
        " --jobs=1, or start one process per --shard"
      )
    own_shares = shares.make(wanted.jobs)
    # The devices belong to the workers; this process only keeps the books.
    jax.config.update("jax_platforms", "cpu")
  elif not wanted.dry_run:
    process.start()  # Before data are read, which starts threads.
  folder = pathlib.Path(wanted.workdir).absolute()
  # All that can be checked without data comes before they are read.
  grid.check(config, wanted.seeds, wanted.methods, wanted.num_domains)
  grid.check_given(wanted.given, wanted.methods, config)
  grid.part([], wanted.shard)
  with agreement.alike():
    if not wanted.dry_run:
      config_lib.find_weights(config)
    dataset = registry.load(config.dataset, config.data_dir, config.store_size)
    runs = grid.make(
      config,
      dataset,
      wanted.targets,
      wanted.seeds,
      wanted.methods,
      wanted.num_domains,
    )
    own, shard, shards = grid.part(runs, wanted.shard)
    # Checked before anything is trained: one bad value would spoil all runs.
    for run in own:
      config_lib.check(run.config)
      config_lib.check_split(
        run.config, leave_one_out(dataset, run.config.target)
      )
      check_config(place(folder, run), run.config.to_dict())
  for name, why in grid.unsupported(wanted.methods, config).items():
    console.say(f"{name} is left out: {why}")
  for name, same in grid.left_out(wanted.methods, config).items():
    console.say(f"{name} equals {same} on {config.backbone}: left out")
  if wanted.dry_run:
    _list(folder, own)
    return
  folder.mkdir(parents=True, exist_ok=True)
  tally = Tally(folder, own, Ledger(folder, shard, shards))
  if own_shares:
    jobs.train(tally, own_shares)
  else:
    one_by_one.train(tally)
  if tally.summary():
    sys.exit(1)
  done = sum(read_result(place(folder, run)) is not None for run in own)
  console.say(
    f"{done} of {len(own)} runs are done; for the tables:"
    f" {next_commands.report(wanted.workdir)}"
  )


def _list(folder: pathlib.Path, runs: list[grid.Run]) -> None:
  """Lists the runs and how far each one is."""
  counts = {"done": 0, "begun": 0, "to do": 0}
  for run in runs:
    begun = (place(folder, run) / "config.json").exists()
    state = "begun" if begun else "to do"
    if result := read_result(place(folder, run)):
      state = "done"
      accuracy = 100 * result["measured"]["target_accuracy"]
    counts[state] += 1
    figure = f"  target {accuracy:.2f} %" if state == "done" else ""
    console.say(f"{state:6} {run.name}{figure}")
  told = ", ".join(f"{count} {state}" for state, count in counts.items())
  console.say(f"{len(runs)} run{'s' * (len(runs) != 1)}: {told}")
