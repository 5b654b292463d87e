"""Records of runs that never were, for tests of the report."""

import json

from comen_jax.report.records import Record

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
  """The last epoch is a point worse than the chosen one, oracle one better."""
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
  """As a sweep writes it."""
  keys = ("run", "row", "measured", "provenance")
  return json.dumps({key: getattr(value, key) for key in keys}) + "\n"


def grid(row, figures, **more):
  """Records from {target: (accuracy of seed 0, of seed 1, ...)}."""
  return [
    record(row, target, seed, accuracy, **more)
    for target, accuracies in figures.items()
    for seed, accuracy in enumerate(accuracies)
  ]
