"""Trains the runs of a table: every target, method and seed.

  python -m comen_jax.sweep --config configs/digits.py --workdir W \\
    --targets=all --seeds=0,1,2 --methods=deepall,deepall_bn,comen

`--methods=ablation` trains the paper's eight rows and our controls,
`--methods=label_free` all methods that use no domain labels, `label_free_bn`
the same with BatchNorm, `labelled` those that use them (docs/methods.md);
`--num_domains=2,3,4,5` tries several M; `--jobs=4` trains four runs at a time,
each on its share of the cores or GPUs; `--shard=i/n` does the i-th of n parts
(from 0), for a job array; `--dry_run` lists the runs and their state. Every key
of the config is a flag, too. The same command again repeats no finished run and
resumes one that was stopped. Then:

  python -m comen_jax.report W
"""

from absl import app, flags

from comen_jax import config_flag, stopping
from comen_jax.errors import UserError, command_line
from comen_jax.run import disk_errors
from comen_jax.variants import VARIANTS

flags.adopt_module_key_flags(config_flag)
_WORKDIR = flags.DEFINE_string("workdir", "", "Folder of the sweep; required.")
_TARGETS = flags.DEFINE_string(
  "targets", "all", "all, or names separated by commas."
)
_SEEDS = flags.DEFINE_string("seeds", "0", "Seeds, separated by commas.")
_METHODS = flags.DEFINE_string(
  "methods", "deepall,deepall_bn,comen",
  "ablation, label_free, label_free_bn, labelled, or rows separated by commas:"
  f" {', '.join(VARIANTS)}.",
)  # fmt: skip
_NUM_DOMAINS = flags.DEFINE_string(
  "num_domains", "", "Values of M, separated by commas. Default: the config's."
)
_SHARD = flags.DEFINE_string(
  "shard", "0/1", "i/n: do the i-th of n parts, counted from 0."
)
_JOBS = flags.DEFINE_integer(
  "jobs", 1,
  "Number of runs that are trained at a time. Each has its share of the CPU"
  " cores, or of the GPUs.", lower_bound=1,
)  # fmt: skip
_DRY_RUN = flags.DEFINE_bool(
  "dry_run", False, "List the runs and train nothing."
)


def main(argv: list[str]) -> None:
  config = config_flag.get(argv)
  stopping.listen()
  if not _WORKDIR.value:
    raise UserError("--workdir is missing: give the folder of the sweep")
  # Imported here: jax takes seconds, and --help or a wrong flag needs none.
  from comen_jax.process import distributed, nans
  from comen_jax.sweep import table

  wanted = table.Wanted(
    workdir=_WORKDIR.value,
    targets=_TARGETS.value,
    seeds=_SEEDS.value,
    methods=_METHODS.value,
    num_domains=_NUM_DOMAINS.value,
    shard=_SHARD.value,
    jobs=_JOBS.value,
    dry_run=_DRY_RUN.value,
    given=config_flag.given(),
  )
  debugged = nans.debugged(config_flag.debug_nans())
  in_one_line = disk_errors.in_one_line(wanted.workdir)
  with distributed.session(), debugged, in_one_line:
    table.train_runs(config, wanted)


if __name__ == "__main__":
  with command_line("stopped; the same command resumes the sweep"):
    app.run(main, flags_parser=config_flag.parse)
