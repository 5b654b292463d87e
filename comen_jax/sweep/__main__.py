"""Trains the runs of a table: every target, method and seed.

  python -m comen_jax.sweep --config configs/digits.py --workdir W \\
    --targets=all --seeds=0,1,2 --methods=deepall,deepall_bn,comen

`--methods=ablation` trains the paper's eight rows and our controls;
`--num_domains=2,3,4,5` tries several M; `--shard=i/n` does the i-th of n parts
(from 0), for a job array; `--dry_run` lists the runs and their state. Every key
of the config is a flag, too. The same command again repeats no finished run and
resumes one that was stopped. Then:

  python -m comen_jax.report W
"""

import contextlib
import gc
import pathlib
import sys
import tempfile
import traceback
from collections.abc import Iterator

import jax
from absl import app, flags

from comen_jax import config as config_lib
from comen_jax import config_flag, train
from comen_jax.data import registry
from comen_jax.errors import BusyError, UserError, command_line
from comen_jax.files import write_text
from comen_jax.run import console
from comen_jax.run.workdir import check_config, read_result
from comen_jax.sweep import grid
from comen_jax.sweep.ledger import Ledger

flags.adopt_module_key_flags(config_flag)
_WORKDIR = flags.DEFINE_string("workdir", "", "Folder of the sweep; required.")
_TARGETS = flags.DEFINE_string(
  "targets", "all", "all, or names separated by commas."
)
_SEEDS = flags.DEFINE_string("seeds", "0", "Seeds, separated by commas.")
_METHODS = flags.DEFINE_string(
  "methods", "deepall,deepall_bn,comen",
  "ablation, or rows separated by commas: deepall, deepall_bn, comen, sdnorm,"
  " protogr, protoccl, protogr_protoccl, sdnorm_protogr, sdnorm_protoccl,"
  " protogr_protoccl_bn, comen_true_domains (uses domain labels).",
)  # fmt: skip
_NUM_DOMAINS = flags.DEFINE_string(
  "num_domains", "", "Values of M, separated by commas. Default: the config's."
)
_SHARD = flags.DEFINE_string(
  "shard", "0/1", "i/n: do the i-th of n parts, counted from 0."
)
_DRY_RUN = flags.DEFINE_bool(
  "dry_run", False, "List the runs and train nothing."
)


def main(argv: list[str]) -> None:
  config = config_flag.get(argv)
  if not _WORKDIR.value:
    raise UserError("--workdir is missing: give the folder of the sweep")
  dataset = registry.load(config.dataset, config.data_dir, config.store_size)
  runs = grid.make(
    config,
    dataset,
    _TARGETS.value,
    _SEEDS.value,
    _METHODS.value,
    _NUM_DOMAINS.value,
  )
  own, shard, shards = grid.part(runs, _SHARD.value)
  folder = pathlib.Path(_WORKDIR.value).absolute()
  # Checked before anything is trained: one bad value would spoil all runs.
  for run in own:
    config_lib.check(run.config)
    check_config(_place(folder, run), run.config.to_dict())
  for name, same in grid.left_out(_METHODS.value, config).items():
    console.say(f"{name} equals {same} on {config.backbone}: left out")
  if _DRY_RUN.value:
    _list(folder, own)
    return
  folder.mkdir(parents=True, exist_ok=True)
  with _compiled_once():
    failed = run_all(folder, own, Ledger(folder, shard, shards))
  if failed:
    sys.exit(1)
  done = sum(read_result(_place(folder, run)) is not None for run in own)
  console.say(
    f"{done} of {len(own)} runs are done; for the tables:"
    f" python -m comen_jax.report {_WORKDIR.value}"
  )


@contextlib.contextmanager
def _compiled_once() -> Iterator[None]:
  """Lets runs share compiled code if they differ only in their data.

  The cache lives as long as the process: code for one CPU may not run on
  another host of a cluster. JAX_COMPILATION_CACHE_DIR, if set, is used instead.
  """
  if jax.config.jax_compilation_cache_dir:
    yield
    return
  with tempfile.TemporaryDirectory(prefix="comen_jax_") as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    yield


def run_all(
  folder: pathlib.Path, runs: list[grid.Run], ledger: Ledger
) -> dict[str, str]:
  """Trains the runs that are left -> names and reasons of those that failed."""
  left = []
  for run in runs:
    if result := read_result(_place(folder, run)):
      ledger.add(run.name, run.row, result)
    else:
      left.append(run)
  done = len(runs) - len(left)
  console.say(f"{len(runs)} runs, {done} done, {len(left)} to do")
  clock = console.Eta(len(left))
  remaining = None
  failed: dict[str, str] = {}
  elsewhere: list[str] = []
  for number, run in enumerate(left):
    ended = "" if remaining is None else f", ETA {console.clock(remaining)}"
    bad = f", {len(failed)} failed" if failed else ""
    console.say(f"\n[{done + number + 1}/{len(runs)}{bad}{ended}] {run.name}")
    try:
      train.train_and_evaluate(run.config, str(_place(folder, run)))
      ledger.add(run.name, run.row, read_result(_place(folder, run)))
    except BusyError:
      console.say("another job trains this run: skipped")
      elsewhere.append(run.name)
    except Exception as e:
      failed[run.name] = _report_failure(_place(folder, run), e)
    # The jitted steps of a run hold its data; they would pile up.
    jax.clear_caches()
    gc.collect()
    remaining = clock.tick()
  if elsewhere:
    console.say(f"skipped, other jobs train them: {', '.join(elsewhere)}")
  if failed:
    lines = [f"  {name}: {reason}" for name, reason in failed.items()]
    console.say("\n".join([
      f"\n{len(failed)} of {len(runs)} runs failed; the same command tries them"
      " again:", *lines,
    ]))  # fmt: skip
  return failed


def _report_failure(place: pathlib.Path, error: Exception) -> str:
  """Says in one line why a run failed; a traceback goes to its folder."""
  reason = str(error).strip().partition("\n")[0]
  if not isinstance(error, UserError):
    place.mkdir(parents=True, exist_ok=True)
    write_text(place / "error.txt", "".join(traceback.format_exception(error)))
    reason = f"{type(error).__name__}: {reason} ({place / 'error.txt'})"
  console.warn(f"this run failed: {reason}")
  return reason


def _list(folder: pathlib.Path, runs: list[grid.Run]) -> None:
  """Lists the runs and how far each one is."""
  counts = {"done": 0, "begun": 0, "to do": 0}
  for run in runs:
    begun = (_place(folder, run) / "config.json").exists()
    state = "begun" if begun else "to do"
    if result := read_result(_place(folder, run)):
      state = "done"
      accuracy = 100 * result["measured"]["target_accuracy"]
    counts[state] += 1
    figure = f"  target {accuracy:.2f} %" if state == "done" else ""
    console.say(f"{state:6} {run.name}{figure}")
  told = ", ".join(f"{count} {state}" for state, count in counts.items())
  console.say(f"{len(runs)} runs: {told}")


def _place(folder: pathlib.Path, run: grid.Run) -> pathlib.Path:
  return folder / "runs" / run.name


if __name__ == "__main__":
  with command_line("stopped; the same command resumes the sweep"):
    app.run(main, flags_parser=config_flag.parse)
