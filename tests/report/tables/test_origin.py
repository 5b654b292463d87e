"""The table of where results come from."""

from comen_jax.report.tables.origin import origin

from ..helpers import make, record


def test_the_origin_lists_all_that_differs():
  records = [
    record(),
    record(
      seed=2,
      provenance={
        "commit": "ffff-dirty",
        "packages": {"jax": "0.11.0"},
        "seconds_of_this_start": 300.0,
        "resumed_at_unit": 4,
      },
    ),
  ]
  table = make(origin, records)
  values = {row[0].text: row[1].text for row in table.rows}
  assert values["Manifest"] == "71c3b8cc66314135"
  assert values["Commit"] == "42aebf06b520, ffff-dirty"
  assert values["Packages"] == "flax 0.12.8, jax 0.10.2 and 0.11.0"
  assert values["Devices"] == "1 x cpu"
  assert values["Seeds"] == "0, 2"
  assert values["Epochs"] == "10"
  assert (
    values["Time"] == "3.3 min per run (100 s to 5.0 min), 6.7 min in total"
  )
  notes = " ".join(table.notes)
  assert "2 different commits" in notes
  assert "uncommitted changes" in notes
  assert "1 of the runs were interrupted" in notes


def test_an_unknown_origin_is_empty():
  table = make(origin, [record()._replace(provenance={})])
  values = {r[0].text: r[1].text for r in table.rows}
  unknown = {name for name, text in values.items() if not text}
  assert unknown == {
    "Pretrained weights", "Commit", "Python", "Packages", "Devices",
    "Processes", "Time",
  }  # fmt: skip
  table = make(origin, [record(dataset="pacs", weights="")])
  one = {r[0].text: r[1].text for r in table.rows}
  assert one["Pretrained weights"] == "none (random start)"
  assert one["Time"] == "100 s"
