"""Commands answer --help and a wrong flag at once: they import no jax."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, load_config

from comen_jax import ranges

SECONDS = 1.5  # Of CPU time.
HEAVY = ("jax", "flax", "orbax", "sklearn", "matplotlib", "tensorflow_datasets")
CONFIG = f"--config={ROOT / 'configs' / 'digits.py'}"
# Runs a command as `python -m` does, then reports on the process.
CODE = f"""
import json, resource, runpy, sys
module, *sys.argv = sys.argv[1:]
code = 0
try:
  runpy.run_module(module, run_name="__main__", alter_sys=True)
except SystemExit as e:
  code = e.code
used = resource.getrusage(resource.RUSAGE_SELF)
heavy = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps([code, heavy, used.ru_utime + used.ru_stime]))
"""


def start(module: str, *arguments: str, output: bool = False):
  """Returns the exit code, heavy imports, CPU seconds and error output.

  With `output`, standard output comes after them.
  """
  done = subprocess.run(
    [sys.executable, "-c", CODE, module, module, *arguments],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    capture_output=True, text=True,
  )  # fmt: skip
  *out, report = done.stdout.splitlines()
  found = (*json.loads(report), done.stderr)
  return (*found, "\n".join(out)) if output else found


COMMANDS = ["main", "sweep", "predict", "report", "data.prepare"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_nothing_heavy(command):
  code, heavy, seconds, err = start(f"comen_jax.{command}", "--help")
  assert (code, heavy, err) == (0, [], "")
  assert seconds < SECONDS


@pytest.mark.parametrize("command", ["main", "sweep"])
def test_help_lists_the_keys_of_the_config_with_their_values(command):
  arguments = (CONFIG, "--config.epochs=7", "--help")
  code, heavy, seconds, err, out = start(
    f"comen_jax.{command}", *arguments, output=True
  )
  assert (code, heavy, err) == (0, [], "")
  assert seconds < SECONDS
  assert re.search(r"--config\.epochs=7 +a whole number", out)
  assert "'--config.stage_shares=(0.1, 0.2, 0.7)'" in out
  for key, _ in ranges.flat(load_config("digits")):
    assert f"--config.{key}=" in out


def test_a_reader_that_has_read_enough_ends_a_command_quietly():
  """As `... --help | head` does."""
  command = [sys.executable, "-m", "comen_jax.main", CONFIG, "--help"]
  reader, writer = os.pipe()
  os.close(reader)
  done = subprocess.run(
    command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True
  )
  os.close(writer)
  assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
  ("command", "arguments", "text"),
  [
    ("main", ("--nope",), "nope"),
    ("main", (CONFIG, "--config.targt=x"), "did you mean config.target?"),
    ("main", (CONFIG, "--config.mixstyle.foo=1"), "give one of mixstyle.alpha"),
    ("main", (CONFIG, "--config.epochs=3.5"), "epochs=3.5: give a whole"),
    ("main", (CONFIG, "--config.irm.weight=1"), "is not read by comen"),
    ("main", (), "--config is missing"),
    ("main", (CONFIG, "--config.momentum=2"), "momentum=2.0: give"),
    ("sweep", (CONFIG, "--config.targt=x"), "did you mean config.target?"),
    ("sweep", (CONFIG, "--workdir=W", "--jobs=0"), "--jobs=0"),
    ("sweep", (CONFIG, "--workdir=W", "--jobs=-1"), "--jobs=-1"),
    ("sweep", (CONFIG, "--workdir=W", "--jobs=x"), "--jobs=x"),
    ("sweep", (CONFIG,), "--workdir is missing"),
    ("predict", ("--run=R", "--nope"), "--nope"),
    ("predict", ("--run=R",), "no images"),
    ("report", ("W", "--nope"), "--nope"),
  ],
)
def test_a_wrong_flag_is_one_line_and_imports_nothing_heavy(
  command, arguments, text
):
  code, heavy, seconds, err = start(f"comen_jax.{command}", *arguments)
  assert (code, heavy) == (2, [])
  assert text in err and err.startswith("error: ")
  assert err.count("\n") == 1, err
  assert seconds < SECONDS
