"""Files of a run that cannot be read: one line each, and the report goes on."""

import sys
from collections.abc import Callable

# Is called with a line that names the file and says what the report lacks.
Tell = Callable[[str], None]


def warn(line: str) -> None:
  """Prints the line as a warning of the command."""
  print(f"warning: {line}", file=sys.stderr, flush=True)
