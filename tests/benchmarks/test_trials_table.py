"""The table of trials, from records that are written here."""

import json

from benchmarks import trials_table


def write(folder, values):
  """Records of a trial: {(target, seed): accuracy}, with an epoch's log."""
  folder.mkdir()
  lines = []
  for (target, seed), value in values.items():
    run = f"{target}-{seed}"
    measured = {
      "target": target,
      "seed": seed,
      "target_accuracy": value,
      "val_accuracy": 0.9,
    }
    lines.append(json.dumps({"measured": measured, "run": run}))
    (folder / "runs" / run).mkdir(parents=True)
    log = folder / "runs" / run / "metrics.jsonl"
    log.write_text('{"epoch": 1, "edge_share": 0.5}\n', encoding="utf-8")
  text = "\n".join(lines) + "\n"
  (folder / "results.0-of-1.jsonl").write_text(text, encoding="utf-8")


def test_differences_are_of_the_same_target_and_seed(tmp_path):
  keys = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
  write(tmp_path / "deepall_bn", dict(zip(keys, (0.5, 0.6, 0.7, 0.8))))
  write(tmp_path / "off_before", dict(zip(keys, (0.52, 0.62, 0.72, 0.82))))
  write(tmp_path / "weak_before", dict(zip(keys, (0.53, 0.62, 0.73, 0.82))))
  names = ("deepall_bn", "off_before", "weak_before", "raw_before")
  table = trials_table.make(tmp_path, dict.fromkeys(names, ()))
  rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
  by_name = {row[0]: row for row in rows if len(row) > 4}
  assert by_name["off_before"][1:6] == [
    "4",
    "67.0 ± 7.1",
    "+2.0",
    "± 0.0",
    "90.0",
  ]
  assert by_name["off_before"][9] == "0.500"
  # The mean of 1, 0, 1, 0 is .5, its deviation .58; Student's t is 3.18.
  assert ["weak_before", "off_before", "+0.5", "± 0.9"] in rows
  assert "raw_before" not in table
