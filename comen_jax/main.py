"""Trains one network: `python -m comen_jax.main --config configs/digits.py`.

Any key of the config can be given, `--config.target=svhn --config.seed=1`.
The same command again goes on where it stopped.
"""

import hashlib
import json

from absl import app, flags

from comen_jax import config_flag, train
from comen_jax.errors import command_line

flags.adopt_module_key_flags(config_flag)
_WORKDIR = flags.DEFINE_string(
  "workdir", "", "Folder of the run; default: one under runs/ by the config."
)


def main(argv: list[str]) -> None:
  config = config_flag.get(argv)
  train.train_and_evaluate(config, _WORKDIR.value or _default_workdir(config))


def _default_workdir(config) -> str:
  text = json.dumps(config.to_dict(), sort_keys=True, default=str)
  digest = hashlib.sha256(text.encode()).hexdigest()[:8]
  target = config.target or "default"
  name = f"{config.dataset}-{target}-{config.method}-seed{config.seed}"
  return f"runs/{name}-{digest}"


if __name__ == "__main__":
  with command_line("stopped; the same command goes on from here"):
    app.run(main, flags_parser=config_flag.parse)
