"""The flag `--config`. What is wrong with it is said in one line."""

import difflib
import re
import shlex
import sys
from typing import Any

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from comen_jax import ranges
from comen_jax.errors import UserError
from comen_jax.methods import options

_CONFIG = config_flags.DEFINE_config_file(
  "config", None, "Config file, such as configs/digits.py."
)
_DEBUG_NANS = flags.DEFINE_bool(
  "debug_nans", False,
  "Stop at the operation that makes the first NaN, with a traceback; slow.",
)  # fmt: skip
_MANY = 10  # Keys of a block; more are left to --help.
_HELP = ("--help", "-help", "--h", "-h", "-?", "--helpshort")


def parse(argv: list[str]) -> list[str]:
  """Parses all flags; this is the `flags_parser` of `app.run`.

  If one of them asks for help, this prints it and ends the process.
  """
  program, *given = argv
  others = [argument for argument in given if argument not in _HELP]
  if len(others) < len(given):
    app.usage(shorthelp=True, writeto_stdout=True)
    _parse([program, *others])
    print(_keys(), flush=True)
    sys.exit(0)
  return _parse(argv)


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
  ranges.check(_CONFIG.value)
  return _CONFIG.value


def given() -> dict[str, Any]:
  """Returns the keys that have a flag, such as --config.seed=1: {"seed": 1}."""
  return dict(config_flags.get_override_values(flags.FLAGS["config"]))


def _parse(argv: list[str]) -> list[str]:
  try:
    rest = flags.FLAGS(argv)
    if _CONFIG.value is not None:
      _CONFIG.value.to_dict()  # A broken file fails only when it is read.
    return rest
  except (AttributeError, KeyError) as e:
    # ml_collections puts quotes around its text again.
    text = str(e.args[0] if e.args else e).replace("\\n", " ")
    raise UserError(
      _unknown_key(argv) or f"the config has no such key: {_one_line(text)}"
    ) from e
  except OSError as e:
    text = str(e).split("path]:")[-1]
    raise UserError(f"the config does not load: {_one_line(text)}") from e
  except (flags.Error, TypeError, ValueError) as e:
    text = str(e).strip()
    if "Traceback" in text:  # get_config raised; the last line says what.
      name = text.partition("=")[2].partition(": ")[0]
      reason = text.splitlines()[-1].partition(": ")[2]
      raise UserError(f"{name} does not load: {_one_line(reason)}") from e
    wrong = re.match(r"flag --config\.([\w.]+)=(.*?): ", text, re.DOTALL)
    if wrong and (rule := ranges.RULES.get(wrong[1])):
      value = _one_line(wrong[2])
      raise UserError(f"{wrong[1]}={value}: give {rule.allowed}") from e
    raise UserError(f"{_one_line(text)} (--help lists the flags)") from e


def _unknown_key(argv: list[str]) -> str:
  """Names the first flag that is no key of the config, and the nearest key."""
  config = _without_keys(argv)
  if config is None:
    return ""
  keys = [key for key, _ in ranges.flat(config)]
  blocks = {key.partition(".")[0] for key in keys if "." in key}
  for word in argv:
    name = word.lstrip("-").partition("=")[0]
    key = name.removeprefix("config.")
    if key != name and key not in keys and key not in blocks:
      return f"config.{key}: there is no such key; {_way_out(key, keys)}"
  return ""


def _without_keys(argv: list[str]) -> ConfigDict | None:
  """The config as its file has it; None if the file does not load."""
  # ml_collections looks for keys in sys.argv, whatever it is given.
  plain = [w for w in argv if not w.lstrip("-").startswith("config.")]
  kept, sys.argv = sys.argv, plain
  try:
    flags.FLAGS(plain)
    return _CONFIG.value
  except (AttributeError, KeyError, flags.Error):
    return None
  finally:
    sys.argv = kept


def _way_out(key: str, keys: list[str]) -> str:
  """What a user can give in place of a key that does not exist."""
  block, dot, _ = key.partition(".")
  if own := [k for k in keys if dot and k.startswith(f"{block}.")]:
    near = difflib.get_close_matches(key, own, 1, 0.85)
    if not near and len(own) < _MANY:
      return f"give one of {', '.join(own)}"
  else:
    near = difflib.get_close_matches(key, keys, 1)
  if near:
    return f"did you mean config.{near[0]}?"
  if blocks := options.COMBINATIONS.get(block):
    return f"the options of {block} are in {' and '.join(blocks)}"
  return "--help lists the keys"


def _keys() -> str:
  """Lists the keys of the config with their values, ready to be copied."""
  if _CONFIG.value is None:
    return "To list the keys of a config: --config configs/digits.py --help"
  lines = ["keys of the config, their values and what is allowed:"]
  values = dict(ranges.flat(_CONFIG.value))
  # In the order of the table, which is that of the config's file.
  for key in sorted(values, key=[*ranges.RULES, *values].index):
    given = shlex.quote(f"--config.{key}={values[key]}")
    rule = ranges.RULES.get(key)
    lines.append(f"  {given:<42} {rule.allowed if rule else ''}".rstrip())
  return "\n".join(lines)


def debug_nans() -> bool:
  """Returns the flag --debug_nans."""
  return _DEBUG_NANS.value


def _one_line(text: str) -> str:
  """Removes line breaks and quotes."""
  return " ".join(text.replace("\\", "").replace("'", "").split())
