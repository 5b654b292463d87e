"""What the training logs say of latent domains, from logs made by hand."""

import json

from comen_jax.report.tables import stability

from ..helpers import drawable, is_whole, make, texts

PREPARED = [
  {"kind": "prepare", "stage": "discover", "nmi_domain": 0.5},
  {
    "kind": "prepare",
    "stage": "encode",
    "clustering_agreement": 0.96,
    "domain_sizes": [30, 60, 10],
    "nmi_domain": 0.48,
  },
]


def epoch(share, **more):
  return {
    "kind": "epoch",
    "stage": "encode",
    "share_protoccl": share,
    "share_protogr": share / 10,
    "domain_agreement": 0.9,
    "edge_share": 1.0,
    **more,
  }


def lines(*records):
  return "".join(json.dumps(r) + "\n" for r in records)


LOG = lines(
  *PREPARED,
  # An epoch of another stage does not count.
  {"kind": "epoch", "stage": "discover", "share_protoccl": 9.0},
  epoch(0.1),
  epoch(0.8),
  epoch(0.2, domain_agreement=0.99, edge_share=0.07),
)


def test_a_log_by_hand(tmp_path):
  table = make(stability.table, [drawable(tmp_path, metrics=LOG)])
  assert is_whole(table)
  assert texts(table) == [
    ("COMEN",),
    *(
      (name, "1", "96.0", "99.0", "0.480", "-0.020", "10.0", "0.020", "0.200",
       "7.0")
      for name in ("photo", "All")
    ),
  ]  # fmt: skip


def test_runs_are_shown_as_a_range_and_what_is_unknown_is_empty(tmp_path):
  first, second = PREPARED
  other = lines(
    {**first, "nmi_domain": None},
    {**second, "nmi_domain": None, "clustering_agreement": 0.9},
  )
  records = [
    drawable(tmp_path, seed=0, metrics=LOG),
    drawable(tmp_path, seed=1, metrics=other),
  ]
  row = texts(make(stability.table, records))[1]
  assert row == (
    "photo", "2", "90.0 to 96.0", "99.0", "0.480", "-0.020", "10.0", "0.020",
    "0.200", "7.0",
  )  # fmt: skip


def test_runs_without_a_clustering_or_a_whole_log_have_no_place(tmp_path):
  random = lines({"kind": "prepare", "stage": "encode"}, epoch(0.1))
  records = [
    drawable(tmp_path, seed=0, metrics=random),
    drawable(tmp_path, seed=1, metrics="{\n" + LOG),
    drawable(tmp_path, seed=2),
    drawable(tmp_path, "deepall", metrics=lines({"kind": "epoch"})),
  ]
  assert make(stability.table, records) is None
