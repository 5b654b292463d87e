"""Trains one network: `python -m comen_jax.main --config configs/digits.py`.

Every key of the config is a flag: `--config.target=svhn --config.seed=1`.
The same command resumes a run that was stopped. Under Slurm, on a TPU slice and
under launch/local.sh, several processes train one run (docs/scale.md).
"""

import hashlib
import json
import pathlib

from absl import app, flags

from comen_jax import config_flag, stopping
from comen_jax.errors import command_line
from comen_jax.methods import options

flags.adopt_module_key_flags(config_flag)
_WORKDIR = flags.DEFINE_string(
  "workdir",
  "",
  "Folder of the run. Default: a folder in runs/, named by the config.",
)


def main(argv: list[str]) -> None:
  config = config_flag.get(argv)
  options.check_read(config_flag.given(), [config.method])
  stopping.listen()
  # Imported here: jax takes seconds, and --help or a wrong flag needs none.
  from comen_jax import process, train
  from comen_jax.data import registry
  from comen_jax.process import distributed, nans
  from comen_jax.run import console, next_commands

  process.start()
  dataset = registry.shown_name(config.dataset, config.data_dir)
  workdir = _WORKDIR.value or _default_workdir(config, dataset)
  with distributed.session(), nans.debugged(config_flag.debug_nans()):
    train.train_and_evaluate(config, workdir)
    console.say(next_commands.lines(pathlib.Path(workdir)))


def _default_workdir(config, dataset: str) -> str:
  used = options.recorded(config.to_dict())
  text = json.dumps(used, sort_keys=True, default=str)
  digest = hashlib.sha256(text.encode()).hexdigest()[:8]
  target = config.target or "default"
  name = f"{dataset}-{target}-{config.method}-seed{config.seed}"
  return f"runs/{name}-{digest}"


if __name__ == "__main__":
  with command_line("stopped; the same command resumes the run"):
    app.run(main, flags_parser=config_flag.parse)
