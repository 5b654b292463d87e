"""Tables in markdown, and pages that programs keep up to date."""

from collections.abc import Iterable

from comen_jax.errors import UserError

END = "<!-- up to here -->"


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
  """Draws a table in markdown."""
  head = list(head)
  lines = [head, ["---"] * len(head), *rows]
  return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put(tables: str, page: str, begin: str) -> str:
  """Puts tables into a page, between the mark `begin` and the mark `END`."""
  before, found, rest = page.partition(begin)
  _, ended, after = rest.partition(END)
  if not (found and ended):
    raise UserError(f"the page has no marks {begin} and {END}: add them")
  return f"{before}{begin}\n\n{tables}\n\n{END}{after}"
