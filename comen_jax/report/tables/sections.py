"""Makes all tables of a report, a section per comparison."""

import pathlib

from comen_jax.report import paper
from comen_jax.report.document import Section
from comen_jax.report.grouping import Comparison
from comen_jax.report.tables import accuracy, comen, differences, stability
from comen_jax.report.tables.origin import origin
from comen_jax.report.tables.runs import listed


def make(found: list[Comparison], out: pathlib.Path) -> list[Section]:
  """Makes a section per comparison, its main table first.

  The paper's own table is in the last section of its data set.

  Args:
    found: the comparisons of a report.
    out: folder of the report.
  """
  last = {comparison.dataset: comparison.title for comparison in found}
  return [_section(one, one.title == last[one.dataset], out) for one in found]


def _section(
  comparison: Comparison, is_last: bool, out: pathlib.Path
) -> Section:
  dataset, title, targets, _ = comparison
  printed = is_last and dataset in paper.TABLES
  found = [
    accuracy.main(comen.without_parts(comparison)),
    differences.of_methods(comparison),
    differences.of_comen(comparison),
    comen.ablation(comparison),
    comen.numbers_of_domains(comparison),
    accuracy.selection(comparison),
    comen.latent(comparison),
    stability.table(comparison),
    accuracy.of_paper(dataset, targets) if printed else None,
    listed(comparison, out),
    origin(comparison),
  ]
  return Section(title, tables=tuple(table for table in found if table))
