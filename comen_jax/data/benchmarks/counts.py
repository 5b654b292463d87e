"""Counts the images per domain, class and split."""

from collections.abc import Mapping

import numpy as np

from comen_jax.data.benchmarks.layout import Count
from comen_jax.data.dataset import Dataset


def report(
  dataset: Dataset,
  published_domains: Mapping[str, Count],
  published_cells: Mapping[tuple[str, str], Count],
) -> str:
  """Writes a table of train/val counts, with a star where they differ.

  Args:
    dataset: the data set.
    published_domains: published count of each domain; may be empty.
    published_cells: published count of each (domain, class); may be empty.
  """
  domains, classes = dataset.domain_names, dataset.class_names
  cells = count(dataset)
  differ = []

  def cell(counts: np.ndarray, published: Count | None, what: str) -> str:
    train, val = counts.tolist()
    same = (train, val) if isinstance(published, tuple) else train + val
    if published is None or same == published:
      return f"{train}/{val}"
    differ.append(f"{what} {_text(same)} (published {_text(published)})")
    return f"{train}/{val}*"

  rows = [["train/val", *domains]]
  totals = [
    cell(cells[d].sum(axis=0), published_domains.get(domain), domain)
    for d, domain in enumerate(domains)
  ]
  for k, name in enumerate(classes):
    rows.append([name])
    for d, domain in enumerate(domains):
      known = published_cells.get((domain, name))
      rows[-1].append(cell(cells[d, k], known, f"{domain} {name}"))
  rows.append(["all classes", *totals])
  if published_domains:
    known = [_text(published_domains[d]) for d in domains]
    rows.append(["published", *known])
  return "\n".join([*_align(rows), "", _verdict(published_domains, differ)])


def count(dataset: Dataset) -> np.ndarray:
  """Counts train and val images: int [domains, classes, 2]."""
  shape = len(dataset.domain_names), len(dataset.class_names), 2
  cells = np.zeros(shape, int)
  np.add.at(cells, (dataset.domains, dataset.labels, dataset.splits), 1)
  return cells


def _verdict(published: Mapping[str, Count], differ: list[str]) -> str:
  if not published:
    return "There are no published counts to compare with."
  if not differ:
    return "All counts equal the published ones."
  more = f" and {len(differ) - 8} more" if len(differ) > 8 else ""
  return f"* differs from the published count: {', '.join(differ[:8])}{more}."


def _text(published: Count) -> str:
  if isinstance(published, tuple):
    return "/".join(map(str, published))
  return str(published)


def _align(rows: list[list[str]]) -> list[str]:
  widths = [max(map(len, column)) for column in zip(*rows)]
  return [
    "  ".join(
      text.rjust(width) if column else text.ljust(width)
      for column, (text, width) in enumerate(zip(row, widths))
    )
    for row in rows
  ]
