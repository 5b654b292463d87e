"""Makes all tables of a report, a section per comparison."""

from comen_jax.report import paper
from comen_jax.report.document import Section
from comen_jax.report.grouping import Comparison, comparisons
from comen_jax.report.records import Record
from comen_jax.report.tables import accuracy, comen, differences
from comen_jax.report.tables.origin import origin


def make(records: list[Record]) -> list[Section]:
  """Makes a section per comparison, its main table first.

  The paper's own table is in the last section of its data set.
  """
  found = comparisons(records)
  last = {comparison.dataset: comparison.title for comparison in found}
  return [_section(one, one.title == last[one.dataset]) for one in found]


def _section(comparison: Comparison, is_last: bool) -> Section:
  dataset, title, targets, groups = comparison
  # Rows with a part switched off are in the ablation, which has all columns.
  whole = [g for g in groups if not comen.is_part(g.setting.row)]
  printed = is_last and dataset in paper.TABLES
  found = [
    accuracy.main(comparison._replace(groups=whole or groups)),
    differences.of_comen(comparison),
    comen.ablation(comparison),
    comen.numbers_of_domains(comparison),
    accuracy.selection(comparison),
    comen.latent(comparison),
    accuracy.of_paper(dataset, targets) if printed else None,
    origin(comparison),
  ]
  return Section(title, tables=tuple(table for table in found if table))
