"""The flag `--config`. What is wrong with it is said in one line."""

from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from comen_jax.errors import UserError

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file, such as configs/digits.py."
)
_DEBUG_NANS = flags.DEFINE_bool(
  "debug_nans", False,
  "Stop at the operation that makes the first NaN, with a traceback; slow.",
)  # fmt: skip


def parse(argv: list[str]) -> list[str]:
  """Parses all flags; this is the `flags_parser` of `app.run`."""
  try:
    rest = flags.FLAGS(argv)
    if _CONFIG.value is not None:
      _CONFIG.value.to_dict()  # A broken file fails only when it is read.
    return rest
  except (AttributeError, KeyError) as e:
    # ml_collections puts quotes around its text again.
    text = str(e.args[0] if e.args else e).replace("\\n", " ")
    raise UserError(f"the config has no such key: {_one_line(text)}") from e
  except OSError as e:
    text = str(e).split("path]:")[-1]
    raise UserError(f"the config does not load: {_one_line(text)}") from e
  except (flags.Error, TypeError, ValueError) as e:
    text = str(e).strip()
    if "Traceback" in text:  # get_config raised; the last line says what.
      name = text.partition("=")[2].partition(": ")[0]
      reason = text.splitlines()[-1].partition(": ")[2]
      raise UserError(f"{name} does not load: {_one_line(reason)}") from e
    raise UserError(f"{_one_line(str(e))} (--help lists the flags)") from e


def get(argv: list[str]) -> ConfigDict:
  """Returns the config; raises UserError at a missing or wrong argument."""
  if len(argv) > 1:
    raise UserError(f"{argv[1]} is not a flag: give --config.key=value")
  # Orbax logs every save at length, and a failed one with ten tracebacks. It
  # raises the error as well, which is enough; --verbosity=0 shows the rest.
  if not flags.FLAGS["verbosity"].present:
    logging.set_verbosity(logging.FATAL)
  if _CONFIG.value is None:
    raise UserError("--config is missing: give --config configs/digits.py")
  return _CONFIG.value


def debug_nans() -> bool:
  """Returns the flag --debug_nans."""
  return _DEBUG_NANS.value


def _one_line(text: str) -> str:
  """Removes line breaks and quotes."""
  return " ".join(text.replace("\\", "").replace("'", "").split())
