"""Runs the training command until its first step has ended, and says when.

  python -m benchmarks.first_step --config configs/digits.py --workdir W

The last line on stdout has the time of the machine's monotonic clock.
"""

import sys
import time
from collections.abc import Callable


def main() -> None:
  from comen_jax import steps
  from comen_jax.errors import command_line

  steps.jit_train_step = _ending(steps.jit_train_step)
  from absl import app

  from comen_jax import config_flag
  from comen_jax import main as command

  with command_line("stopped"):
    app.run(command.main, flags_parser=config_flag.parse)


def _ending(make: Callable) -> Callable:
  """Makes steps of which the first one ends the process."""

  def make_step(*args, **kwargs) -> Callable:
    step = make(*args, **kwargs)

    def once(*inputs):
      import jax

      jax.block_until_ready(step(*inputs))
      print(f"\nfirst step at {time.monotonic()}", flush=True)
      sys.exit(0)

    return once

  return make_step


if __name__ == "__main__":
  main()
