"""Which tables a report has, and in which sections."""

import pathlib

from comen_jax.report.grouping import comparisons
from comen_jax.report.tables import sections

from ..helpers import ALL, LOWER, grid, record, texts


def make(records):
  return sections.make(comparisons(records), pathlib.Path("out"))


def captions(section):
  return [table.caption for table in section.tables]


def test_other_epochs_are_tables_of_their_own():
  short = grid("comen", LOWER) + grid("sdnorm", LOWER)
  long = grid("comen", ALL, epochs=50)
  first, second = make(short + long)
  assert first.title == "Digits-DG, 10 epochs"
  assert second.title == "Digits-DG, 50 epochs"
  assert all("10 epochs" in caption for caption in captions(first))
  ours = [r for r in texts(first.tables[0]) if r[0].startswith("COMEN")]
  assert ours[0][-2:] == ("60.5 ± 0.7", "8")
  ours = [r for r in texts(second.tables[0]) if r[0].startswith("COMEN")]
  assert ours[0][-2:] == ("70.5 ± 0.7", "8")
  assert any(c.startswith("Ablation on") for c in captions(first))
  assert not any(c.startswith("Ablation on") for c in captions(second))


def test_the_papers_table_stands_once_per_data_set_in_its_last_section():
  records = [
    record("comen", "svhn"),
    record("comen", "svhn", epochs=50),
    record("comen", "photo", dataset="pacs"),
    record("comen", "pasted", dataset="mini_digits"),
  ]
  printed = {
    section.title: sum("The paper's values" in c for c in captions(section))
    for section in make(records)
  }
  assert printed == {
    "PACS, 10 epochs": 1,
    "Digits-DG, 10 epochs": 0,
    "Digits-DG, 50 epochs": 1,
    "mini digits, 10 epochs": 0,
  }


def test_every_comparison_has_an_origin_of_its_own():
  records = [record(), record(manifest="a0672131620", seed=1)]
  for section, seed in zip(make(records), "01"):
    origin = dict(texts(section.tables[-1]))
    assert (origin["Runs"], origin["Seeds"]) == ("1", seed)
