"""Trains one network: `python -m comen_jax.main --config configs/digits.py`.

Any key of the config can be given, `--config.target=svhn --config.seed=1`.
The same command again goes on where it stopped.
"""

import hashlib
import json

from absl import app, flags, logging
from ml_collections import config_flags

from comen_jax import train
from comen_jax.errors import UserError, command_line

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file, such as configs/digits.py."
)
_WORKDIR = flags.DEFINE_string(
  "workdir", "", "Folder of the run; default: one under runs/ by the config."
)


def main(argv: list[str]) -> None:
  if len(argv) > 1:
    raise UserError(f"{argv[1]} is not a flag: give --config.key=value")
  # Orbax tells each save at length; --verbosity=0 brings it back.
  if not flags.FLAGS["verbosity"].present:
    logging.set_verbosity(logging.WARNING)
  config = _CONFIG.value
  if config is None:
    raise UserError("--config is missing: give --config configs/digits.py")
  train.train_and_evaluate(config, _WORKDIR.value or _default_workdir(config))


def _default_workdir(config) -> str:
  text = json.dumps(config.to_dict(), sort_keys=True, default=str)
  digest = hashlib.sha256(text.encode()).hexdigest()[:8]
  target = config.target or "default"
  name = f"{config.dataset}-{target}-{config.method}-seed{config.seed}"
  return f"runs/{name}-{digest}"


def _parse(argv: list[str]) -> list[str]:
  """Flags, with what is wrong in one line instead of a traceback."""
  try:
    rest = flags.FLAGS(argv)
    if _CONFIG.value is not None:
      _CONFIG.value.to_dict()  # A file that did not load fails only when read.
    return rest
  except (AttributeError, KeyError) as e:
    # ml_collections quotes its text again: "'targt'\nDid you mean ...".
    text = str(e.args[0] if e.args else e).replace("\\n", " ")
    raise UserError(f"the config has no such key: {_one_line(text)}") from e
  except OSError as e:
    text = str(e).split("path]:")[-1]
    raise UserError(f"the config does not load: {_one_line(text)}") from e
  except (flags.Error, TypeError, ValueError) as e:
    text = str(e).strip()
    if "Traceback" in text:  # Of what get_config raised; its last line is that.
      name = text.partition("=")[2].partition(": ")[0]
      reason = text.splitlines()[-1].partition(": ")[2]
      raise UserError(f"{name} does not load: {_one_line(reason)}") from e
    raise UserError(f"{_one_line(str(e))} (--help lists the flags)") from e


def _one_line(text: str) -> str:
  """Without line breaks, and without quotes around quotes."""
  return " ".join(text.replace("\\", "").replace("'", "").split())


if __name__ == "__main__":
  with command_line("stopped; the same command goes on from here"):
    app.run(main, flags_parser=_parse)
