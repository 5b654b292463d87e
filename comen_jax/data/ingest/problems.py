"""Reports all files that cannot be used in one error."""

from collections.abc import Sequence

from comen_jax.errors import UserError

_LISTED = 20


class BadFilesError(UserError):
  """Reports files that cannot be used.

  Its message is one line: the first problem and how many more there are.

  Attributes:
    problems: one line for each bad file.
  """

  def __init__(self, problems: Sequence[str]):
    self.problems = tuple(problems)
    message = self.problems[0]
    if others := len(self.problems) - 1:
      message += (
        f" (and {others:,} more such errors: python -m comen_jax.data.prepare"
        " lists them)"
      )
    super().__init__(message)

  def listing(self) -> str:
    """Returns the first 20 problems, one per line, and counts the others."""
    if len(self.problems) == 1:
      return self.problems[0]
    lines = [f"{len(self.problems):,} problems with the files:"]
    lines += [f"  {problem}" for problem in self.problems[:_LISTED]]
    if len(self.problems) > _LISTED:
      lines.append(f"  and {len(self.problems) - _LISTED:,} more")
    return "\n".join(lines)


def problems_of(error: UserError) -> tuple[str, ...]:
  """Returns the problems of `BadFilesError`, or another error's message."""
  return error.problems if isinstance(error, BadFilesError) else (str(error),)
