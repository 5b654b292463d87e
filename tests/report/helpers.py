"""Made-up records of runs, and their files, for tests of the report."""

import json
import pathlib

import numpy as np
import pytest

from comen_jax.errors import UserError
from comen_jax.report import grouping
from comen_jax.report.document import Table
from comen_jax.report.records import Record, read

ALL = {  # Accuracies of two seeds by target.
  "mnist": (0.90, 0.92),
  "mnist_m": (0.50, 0.54),
  "svhn": (0.60, 0.60),
  "syn": (0.80, 0.78),
}
LOWER = {target: (a - 0.1, b - 0.1) for target, (a, b) in ALL.items()}
DOMAINS = {
  "digits_dg": ("mnist", "mnist_m", "svhn", "syn"),
  "mini_digits": ("written", "pasted", "street", "printed"),
  "pacs": ("art_painting", "cartoon", "photo", "sketch"),
}
LATENT = {
  "nmi_domain": 0.5,
  "nmi_class": 0.001,
  "effective_domains": 2.9,
  "domain_sizes": [5, 9, 7],
}
PROVENANCE = {
  "command": "python -m comen_jax.sweep --config configs/digits.py",
  "commit": "42aebf06b520",
  "date": "2026-03-04T05:06:07+00:00",
  "device_kind": "cpu",
  "devices": 1,
  "packages": {"jax": "0.10.2", "flax": "0.12.8"},
  "platform": "cpu",
  "processes": 1,
  "python": "3.11.7",
  "resumed_at_unit": 0,
  "seconds_of_this_start": 100.0,
}


def record(
  row="comen",
  target="svhn",
  seed=0,
  accuracy=0.5,
  dataset="digits_dg",
  run=None,
  provenance=(),
  **measured,
) -> Record:
  """A record; the last epoch is a point worse, the oracle a point better."""
  latent = LATENT if not row.startswith("deepall") else dict.fromkeys(LATENT)
  value = {
    "dataset": dataset,
    "manifest": "71c3b8cc66314135",
    "target": target,
    "sources": [
      d for d in DOMAINS.get(dataset, ("a", "b", "c")) if d != target
    ],
    "method": row,
    "seed": seed,
    "epochs": 10,
    "num_domains": 3,
    "target_images": 6000,
    "chance": 0.1,
    "selected_epoch": 9,
    "val_accuracy": 0.9,
    "val_accuracy_last": 0.89,
    "target_accuracy": accuracy,
    "target_accuracy_last": accuracy - 0.01,
    "target_accuracy_oracle": accuracy + 0.01,
    "domain_labels": False,
    **latent,
    **measured,
  }
  name = run or f"{dataset}-{target}-{row}-m{value['num_domains']}-seed{seed}"
  return Record(name, row, value, {**PROVENANCE, **dict(provenance)}, None)


def line(value: Record) -> str:
  """Returns the line that a sweep writes."""
  keys = ("run", "row", "measured", "provenance")
  return json.dumps({key: getattr(value, key) for key in keys}) + "\n"


def grid(row, values, **more):
  """Records from {target: (accuracy of seed 0, of seed 1, ...)}."""
  return [
    record(row, target, seed, accuracy, **more)
    for target, accuracies in values.items()
    for seed, accuracy in enumerate(accuracies)
  ]


def make(table, records) -> Table | None:
  """Makes a table of records that are one comparison."""
  (comparison,) = grouping.comparisons(records)
  return table(comparison)


def texts(table):
  return [tuple(cell.text for cell in row) for row in table.rows]


def is_whole(table):
  return all(len(row) in (1, len(table.header)) for row in table.rows)


def write_run(folder: pathlib.Path, value: Record, row=None, config=None):
  """Writes the folder of a finished run, with a row and config if given."""
  folder.mkdir(parents=True)
  result = {"measured": value.measured, "provenance": value.provenance}
  if row:
    result["row"] = row
  (folder / "result.json").write_text(json.dumps(result))
  if config is not None:
    (folder / "config.json").write_text(json.dumps(config))
  return folder


def refused(folder, *said):
  """The folder is refused in one line that says all of that."""
  with pytest.raises(UserError) as error:
    read([folder])
  text = str(error.value)
  assert "\n" not in text
  for part in said:
    assert str(part) in text


def arrays(classes=3, points=24, latent=True, num_domains=2, seed=0):
  """Arrays of analysis.npz of a run whose target is "photo"."""
  rng = np.random.default_rng(seed)
  nodes = num_domains * classes
  made = {
    "confusion": rng.integers(0, 9, (classes, classes)),
    "features": rng.normal(size=(points, 8)).astype(np.float32),
    "class": np.arange(points) % classes,
    "domain": np.arange(points) % 3,
    "prediction": np.arange(points) % classes,
    "class_names": np.array([f"class{k}" for k in range(classes)]),
    "domain_names": np.array(["ink", "photo", "paint"]),
    "target": np.array("photo"),
  }
  if latent:
    affinity = rng.uniform(0.5, 1, (nodes, nodes)).astype(np.float32)
    made |= {
      "contingency": np.array([[1200, 0, 30], [4, 0, 900]]),
      "thumbnails": rng.integers(0, 255, (2, 24, 4, 4, 3), np.uint8),
      "thumbnail_probs": np.ones((num_domains, 24)),
      "prototypes_seen": np.ones((num_domains, classes), bool),
      "affinity": affinity,
    }
  return made


def log(*values):
  """metrics.jsonl of a run of two stages, with a `prepare` between them."""
  half = len(values) // 2
  records = [
    {
      "kind": "epoch",
      "stage": "discover" if n < half else "encode",
      "epoch": n + 1,
      "loss": value,
      "val_accuracy": value / 10,
      **({"target_accuracy": value / 20} if n >= half else {}),
    }
    for n, value in enumerate(values)
  ]
  records.insert(half, {"kind": "prepare", "stage": "encode"})
  return "".join(json.dumps(r) + "\n" for r in records)


def drawable(
  root, row="comen", seed=0, analysis=None, metrics=None, **measured
):
  """A record on data of our own, with a folder that has the given files."""
  own = {
    "dataset": "own",
    "target": "photo",
    "sources": ["ink", "paint"],
    "num_domains": 2,
    "epochs": 4,
  }
  if analysis is not None and "contingency" in analysis:
    own["domain_sizes"] = analysis["contingency"].sum(axis=1).tolist()
  made = record(row, seed=seed, **{**own, **measured})
  folder = root / f"{made.run}-{made.measured['epochs']}"
  folder.mkdir()
  if analysis is not None:
    np.savez(folder / "analysis.npz", **analysis)
  if metrics is not None:
    (folder / "metrics.jsonl").write_text(metrics)
  return made._replace(folder=folder)
