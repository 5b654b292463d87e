"""Which runs are drawn."""

from comen_jax.report.plots import runs

from ..helpers import arrays, drawable, log


def test_normalised_deepall_stands_beside_comen_where_plain_was_not_run(
  tmp_path,
):
  records = [
    drawable(tmp_path, row, analysis=arrays(latent=row == "comen"))
    for row in ("deepall_bn", "comen", "protogr")
  ]
  (task,) = runs.tasks(records)
  assert [(m.title, m.colour) for m in task.methods] == [
    ("DeepAll + BatchNorm", 0),
    ("COMEN", 1),
  ]


def test_a_rival_takes_the_place_of_a_row_that_was_not_run(tmp_path):
  made = {
    row: drawable(tmp_path, row, metrics=log(2, 1))
    for row in ("deepall_bn", "comen", "fact", "rsc")
  }
  drawn = lambda *rows: [
    (m.title, m.colour) for m in runs.tasks([made[r] for r in rows])[0].methods
  ]
  # RSC is above FACT in the tables.
  assert drawn("deepall_bn", "fact", "rsc") == [
    ("DeepAll + BatchNorm", 0),
    ("RSC", 1),
  ]
  assert drawn("rsc", "comen") == [("COMEN", 1), ("RSC", 0)]
  assert drawn("rsc", "fact") == [("RSC", 0), ("FACT", 1)]
  assert drawn("comen", "rsc", "deepall_bn") == [
    ("DeepAll + BatchNorm", 0),
    ("COMEN", 1),
  ]


def test_of_several_sizes_that_of_the_sources_is_drawn(tmp_path):
  records = [
    drawable(tmp_path, num_domains=m, analysis=arrays()) for m in (1, 2, 3, 4)
  ]
  (task,) = runs.tasks(records)
  assert [m.num_domains for m in task.methods] == [2]


def test_runs_on_other_data_are_not_mixed(tmp_path):
  records = [
    drawable(tmp_path, seed=s, epochs=4 + (s == 0), metrics=log(2, 1))
    for s in range(3)
  ]
  (task,) = runs.tasks(records)
  assert task.title == "own, 4 epochs, target photo"
  assert [log.path for log in task.methods[0].logs] == [
    r.folder / "metrics.jsonl" for r in records[1:]
  ]


def test_a_title_names_the_epochs_only_if_there_are_several(tmp_path):
  one = drawable(tmp_path, metrics=log(2, 1))
  (task,) = runs.tasks([one])
  assert task.title == "own, target photo"
  # Also if the runs of other epochs have no figures.
  other = one._replace(
    measured={**one.measured, "epochs": 9, "seed": 1}, folder=None
  )
  (task,) = runs.tasks([one, other])
  assert task.title == "own, 4 epochs, target photo"


def test_of_equally_many_runs_the_longest_are_drawn(tmp_path):
  records = [
    drawable(tmp_path, epochs=epochs, metrics=log(2, 1)) for epochs in (9, 4, 6)
  ]
  (task,) = runs.tasks(records)
  assert task.title == "own, 9 epochs, target photo"


def test_latent_domains_are_counted_as_in_the_record_or_not_at_all(tmp_path):
  same = drawable(tmp_path, analysis=arrays())
  (task,) = runs.tasks([same])
  counts = task.methods[0].arrays["contingency"]
  assert counts.sum(axis=1).tolist() == same.measured["domain_sizes"]
  # An older file counted other images.
  other = {**same.measured, "domain_sizes": [1300, 1000]}
  (task,) = runs.tasks([same._replace(measured=other)])
  assert "contingency" not in task.methods[0].arrays
  assert "thumbnails" in task.methods[0].arrays
