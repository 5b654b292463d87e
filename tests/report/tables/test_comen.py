"""Tables on COMEN itself, cell by cell, from made-up records."""

from comen_jax.report.document import Cell
from comen_jax.report.tables import comen

from ..helpers import ALL, LOWER, grid, is_whole, make, record, texts


def test_there_is_no_ablation_without_parts():
  records = grid("comen", ALL) + grid("deepall", ALL) + grid("deepall_bn", ALL)
  assert make(comen.ablation, records) is None
  assert make(comen.ablation, [record("new")]) is None


def test_the_ablation_stands_beside_the_papers():
  names = ("comen", "deepall_bn", "sdnorm_protogr", "deepall", "new")
  records = [r for name in names for r in grid(name, ALL)]
  table = make(comen.ablation, records)
  assert is_whole(table)
  short = [row[:4] + row[max(1, len(row) - 3) :] for row in texts(table)]
  assert short == [
    ("DeepAll", "-", "-", "-", "70.5 ± 0.7", "73.7", "8"),
    ("SDNorm + ProtoGR", "✓", "✓", "-", "70.5 ± 0.7", "79.0", "8"),
    ("COMEN", "✓", "✓", "✓", "70.5 ± 0.7", "82.3*", "8"),
    ("Controls that the paper does not have",),
    ("DeepAll + BatchNorm", "-", "-", "-", "70.5 ± 0.7", "", "8"),
  ]
  assert table.header[-2] == "Paper"
  assert any("DSNorm" in note for note in table.notes)
  assert any("82.775" in note for note in table.notes)


def test_an_ablation_on_other_data_has_no_column_of_the_paper():
  records = grid("sdnorm", {"pasted": (0.5,)}, dataset="mini_digits")
  table = make(comen.ablation, records)
  assert is_whole(table)
  assert "Paper" not in table.header


def test_latent_domains_by_hand():
  records = [
    record(seed=0, nmi_domain=0.5, domain_sizes=[5, 9, 7]),
    record(seed=1, nmi_domain=0.6, domain_sizes=[8, 8, 5]),
    record("deepall"),
  ]
  table = make(comen.latent, records)
  # Deviation: a tenth over the root of two.
  assert texts(table) == [
    ("COMEN",),
    (
      "svhn", "0.550 ± 0.071", "0.001 ± 0.000", "2.90 ± 0.00",
      "5 + 9 + 7 / 8 + 8 + 5",
    ),
  ]  # fmt: skip
  assert make(comen.latent, [record("deepall")]) is None


def test_nmi_is_empty_where_nobody_knows_the_domains():
  records = [
    record(target="test", dataset="folder", sources=["train"], nmi_domain=None)
  ]
  table = make(comen.latent, records)
  assert texts(table)[1][:3] == ("test", "", "0.001")


def test_numbers_of_latent_domains_are_compared_if_there_are_several():
  one = grid("comen", ALL) + grid("deepall", ALL)
  assert make(comen.numbers_of_domains, one) is None
  two = one + grid("comen", LOWER, num_domains=2)
  table = make(comen.numbers_of_domains, two)
  assert is_whole(table)
  assert [(r[0], r[-2:]) for r in table.rows] == [
    (Cell("COMEN", bold=True), (Cell("COMEN", bold=True),)),
    (
      Cell("2", numeric=True),
      (Cell("60.5 ± 0.7", numeric=True), Cell("8", numeric=True)),
    ),
    (
      Cell("3", numeric=True),
      (Cell("70.5 ± 0.7", bold=True, numeric=True), Cell("8", numeric=True)),
    ),
  ]
