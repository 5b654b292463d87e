"""The one exception that means: the user can put this right.

`main.py` prints it as a single line, without a traceback; every other exception
is a fault of ours and keeps its traceback. A leaf: any file may import it.
"""


class UserError(ValueError):
  """Bad input. The message names the value and the way out, in one line."""
