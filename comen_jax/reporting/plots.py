# PLACEHOLDER
import pathlib

from comen_jax.reporting.document import Section
from comen_jax.reporting.records import Record


def draw(records: list[Record], folder: pathlib.Path) -> tuple[Section, ...]:
  return ()
