"""Tables of accuracy, cell by cell, from made-up records."""

from comen_jax.report import grouping
from comen_jax.report.tables import accuracy

from ..helpers import ALL, LOWER, grid, is_whole, make, texts


def test_means_deviations_and_average_by_hand():
  table = make(accuracy.main, grid("comen", ALL))
  assert is_whole(table)
  assert table.header == (
    "", "mnist", "mnist_m", "svhn", "syn", "Average", "Runs",
  )  # fmt: skip
  # Two runs: deviation is half their distance times the root of two. Averages
  # of the seeds: (90 + 50 + 60 + 80)/4 = 70, (92 + 54 + 60 + 78)/4 = 71.
  assert list(texts(table)[1]) == [
    "COMEN", "91.0 ± 1.4", "52.0 ± 2.8", "60.0 ± 0.0", "79.0 ± 1.4",
    "70.5 ± 0.7", "8",
  ]  # fmt: skip


def test_a_cell_with_no_run_is_empty_and_so_is_the_average():
  table = make(accuracy.main, grid("deepall", {"svhn": (0.6,), "syn": (0.7,)}))
  assert [c.text for c in table.rows[1]] == [
    "DeepAll", "", "", "60.0", "70.0", "", "2 (0, 0, 1, 1)",
  ]  # fmt: skip
  assert any("per target" in note for note in table.notes)


def test_the_best_of_ours_is_bold_the_papers_is_muted():
  records = grid("comen", ALL) + grid("deepall", LOWER)
  table = make(accuracy.main, records)
  ours, theirs = [r for r in table.rows if r[0].text == "COMEN"]
  deepall = next(r for r in table.rows if r[0].text == "DeepAll")
  assert all(cell.bold for cell in ours[1:-1])
  assert not any(cell.bold for cell in deepall[1:])
  assert all(cell.muted and not cell.bold for cell in theirs)


def test_one_seed_has_no_best_and_says_so():
  single = {**LOWER, "svhn": (0.1,)}
  table = make(accuracy.main, grid("comen", ALL) + grid("deepall", single))
  ours = next(r for r in table.rows if r[0].text == "COMEN")
  # Two seeds have every target in one row, one seed in the other.
  assert [c.bold for c in ours[1:-1]] == [True, True, False, True, False]
  assert any("One seed: no conclusion." in note for note in table.notes)
  both = make(accuracy.main, grid("comen", ALL) + grid("deepall", LOWER))
  assert not any("One seed" in note for note in both.notes)
  # What bold means is said where something is bold.
  says_bold = lambda table: any("Bold is" in note for note in table.notes)
  assert says_bold(both) and not says_bold(table)
  records = grid("comen", ALL) + grid("deepall", LOWER)
  assert not says_bold(make(accuracy.selection, records))


def test_one_row_alone_is_not_the_best():
  table = make(accuracy.main, grid("comen", ALL))
  assert not any(cell.bold for cell in table.rows[1][1:])


def test_rows_told_the_domains_do_not_compete_and_are_noted():
  records = grid("comen", LOWER) + grid("comen_true_domains", ALL)
  records += grid("deepall", {k: (0.1, 0.1) for k in ALL})
  table = make(accuracy.main, records)
  bold = [r[0].text for r in table.rows if r[1:] and r[1].bold]
  assert bold == ["COMEN"]
  assert grouping.LABELS_NOTE in table.notes


def test_the_papers_figures_stand_below_ours_with_their_misprint():
  table = make(accuracy.main, grid("comen", ALL))
  assert texts(table)[-3:] == [
    ("Paper (Chen et al., CVPR 2022, Table 2)",),
    ("DeepAll", "95.8", "58.8", "61.7", "78.6", "73.7", ""),
    ("COMEN", "97.1", "67.6", "75.1", "91.3", "82.3*", ""),
  ]
  (note,) = [n for n in table.notes if n.startswith("* ")]
  assert "82.775" in note


def test_what_ours_are_of_is_told_beside_the_papers():
  notes = " ".join(make(accuracy.main, grid("comen", ALL)).notes)
  assert "10 epochs" in notes and "50 epochs" in notes
  assert "71c3b8cc6631" in notes
  assert "published number" not in notes
  few = make(accuracy.main, grid("comen", ALL, target_images=500))
  assert any("mnist_m 500 of 6,000" in note for note in few.notes)


def test_data_that_the_paper_does_not_have_get_no_paper_rows():
  records = grid("comen", {"pasted": (0.7, 0.8)}, dataset="mini_digits")
  table = make(accuracy.main, records)
  assert texts(table) == [("COMEN", "75.0 ± 7.1", "75.0 ± 7.1", "2")]
  assert not any("paper" in note for note in table.notes)


def test_the_papers_table_in_full_follows_our_order_of_targets():
  targets = ("pascal", "labelme", "caltech", "sun")
  table = accuracy.of_paper("vlcs", targets)
  assert is_whole(table)
  assert len(table.rows) == 2 + 8 + 5
  turned = accuracy.of_paper("vlcs", targets[::-1])
  assert texts(turned)[-1] == ("COMEN", "67.6", "97.0", "62.6", "72.8", "75.0")
  assert any("V is pascal" in note for note in table.notes)


def test_misprints_of_pacs_are_marked_in_its_full_table():
  targets = ("art_painting", "cartoon", "photo", "sketch")
  table = accuracy.of_paper("pacs", targets)
  marked = {r[0].text: r[-1].text for r in table.rows if "*" in r[-1].text}
  assert marked == {"JiGen": "80.5*", "RSC": "81.1*"}
  assert any("SagNet" in note for note in table.notes)


def test_no_column_for_an_oracle_that_no_run_was_asked_for():
  records = [
    r._replace(measured={**r.measured, "target_accuracy_oracle": None})
    for r in grid("comen", ALL)
  ]
  table = make(accuracy.selection, records)
  assert is_whole(table)
  assert not any("oracle" in text for text in (*table.header, *table.notes))


def test_rules_stand_side_by_side_and_the_oracle_is_marked():
  table = make(accuracy.selection, grid("comen", ALL) + grid("deepall", LOWER))
  assert is_whole(table)
  assert table.header == (
    "Target", "best validation", "last epoch", "oracle (uses the target)",
    "source validation",
  )  # fmt: skip
  assert texts(table)[6:9] == [
    ("COMEN",),
    ("mnist", "91.0 ± 1.4", "90.0 ± 1.4", "92.0 ± 1.4", "90.0 ± 0.0"),
    ("mnist_m", "52.0 ± 2.8", "51.0 ± 2.8", "53.0 ± 2.8", "90.0 ± 0.0"),
  ]
  assert texts(table)[-1] == (
    "Average", "70.5 ± 0.7", "69.5 ± 0.7", "71.5 ± 0.7", "90.0 ± 0.0",
  )  # fmt: skip
  for row in (r for r in table.rows if r[1:]):
    assert [cell.muted for cell in row] == [False, False, False, True, False]


def test_rules_of_a_target_without_runs_have_no_line():
  table = make(accuracy.selection, grid("comen", {"svhn": (0.5,)}))
  assert texts(table) == [
    ("COMEN",),
    ("svhn", "50.0", "49.0", "51.0", "90.0"),
    ("Average", "", "", "", ""),
  ]
