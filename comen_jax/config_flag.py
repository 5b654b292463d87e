"""`--config`, and what is wrong with it in one line instead of a traceback."""

from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from comen_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file, such as configs/digits.py."
)


def parse(argv: list[str]) -> list[str]:
  """Parses all flags: `app.run`'s `flags_parser`."""
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


def get(argv: list[str]) -> ConfigDict:
  """The config; there must be one, and no arguments beside flags."""
  if len(argv) > 1:
    raise UserError(f"{argv[1]} is not a flag: give --config.key=value")
  # Orbax tells each save at length; --verbosity=0 brings it back.
  if not flags.FLAGS["verbosity"].present:
    logging.set_verbosity(logging.WARNING)
  if _CONFIG.value is None:
    raise UserError("--config is missing: give --config configs/digits.py")
  return _CONFIG.value


def _one_line(text: str) -> str:
  """Without line breaks, and without quotes around quotes."""
  return " ".join(text.replace("\\", "").replace("'", "").split())
