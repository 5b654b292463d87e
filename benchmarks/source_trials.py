"""Trials on the sources of PACS that chose `configs/pacs.py:quick`.

  python -m benchmarks.source_trials --data_dir D --weights FILE \\
    --out results/source_trials_pacs.jsonl

PACS is a test set, so these trials look at source images only: no image of the
domain that is left out is read. Each trial differs from others in the settings
of its line. OUT gets a line per trial and domain, with the log of every epoch;
what is there already is not repeated. docs/findings.md says what was decided.
"""

import json
import pathlib
import statistics
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from benchmarks.alternate import say
from benchmarks.made import load_config
from benchmarks.tables import Table, render
from comen_jax import process
from comen_jax.errors import Parser, command_line
from comen_jax.experiment import Experiment, build
from comen_jax.files import read_jsonl
from comen_jax.run import discovered, plan, provenance, selection

_LEFT_OUT = ("art_painting", "sketch")
_RATE = {"learning_rate": 0.004}
# A third of it is as large as DeepAll's batch of the other trials, so that each
# of three domains has as many images; three times the epochs, as many steps.
_LARGE = {**_RATE, "batch_size": 96, "epochs": 9}

# Name of the trial: method, settings. First the rate, by DeepAll alone; then,
# with the rate that it chose, whose style decides the domain, and how many
# images the running statistics count for. Then, which part of COMEN makes its
# training loss higher than DeepAll's. At last, whether larger batches help.
TRIALS: dict[str, tuple[str, dict[str, Any]]] = {
  "deepall_rate_001": ("deepall", {"learning_rate": 0.001}),
  "deepall_rate_004": ("deepall", _RATE),
  "deepall_rate_010": ("deepall", {"learning_rate": 0.01}),
  "comen_prior_0": ("comen", {**_RATE, "comen.style_view": "training"}),
  "comen_picture": ("comen", _RATE),
  "comen_picture_8": ("comen", {**_RATE, "sdnorm.prior_mass": 8.0}),
  "comen_picture_24": ("comen", {**_RATE, "sdnorm.prior_mass": 24.0}),
  "comen_batchnorm": ("comen", {**_RATE, "norm": "batch"}),
  "comen_shared_affine": (
    "comen",
    {**_RATE, "sdnorm.per_domain_affine": False},
  ),
  "comen_two_domains": ("comen", {**_RATE, "num_domains": 2}),
  "deepall_batch_96": ("deepall", _LARGE),
  "comen_batch_96": ("comen", _LARGE),
}


def main(argv: list[str] | None = None) -> None:
  """Trains the trials that are left, and prints the table of all."""
  args = _parse(argv)
  process.start()
  for name in args.only:
    for left_out in args.left_out:
      if (name, left_out) in {(r["trial"], r["left_out"]) for r in _read(args)}:
        continue
      config = make_config(name, left_out, args.data_dir, args.weights)
      log = train(build(config))
      record = {
        "trial": name,
        "left_out": left_out,
        "settings": {"method": TRIALS[name][0], **TRIALS[name][1]},
        "log": log,
        "provenance": provenance.collect(),
      }
      args.out.parent.mkdir(parents=True, exist_ok=True)
      with args.out.open("a", encoding="utf-8") as f:
        f.write(json.dumps(record, sort_keys=True) + "\n")
      say(f"{name}, {left_out} left out: done")
  print(render(table(_read(args))))


def make_config(
  name: str, left_out: str, data_dir: str, weights: str
) -> ConfigDict:
  """The config of a trial."""
  config = load_config("pacs:quick")
  config.method, settings = TRIALS[name]
  config.update_from_flattened_dict(settings)
  config.target, config.data_dir = left_out, data_dir
  config.pretrained = weights
  return config


def train(experiment: Experiment) -> list[dict[str, Any]]:
  """Trains as a run does, but never tests -> a record per unit of work."""
  state, log = experiment.init(), []
  for unit in plan.units(experiment.method.stages):
    record: dict[str, Any] = {"stage": unit.stage.name, "kind": unit.kind}
    if unit.epoch is None:
      state, report = experiment.prepare(state, unit.stage_number)
      log.append(record | discovered.record(report, experiment.dataset))
      continue
    history = []
    for batch in experiment.train_batches(unit.run_epoch):
      step = experiment.train_steps[unit.stage_number]
      state, values = step(state, batch, experiment.key)
      history.append(values)
    history = jax.device_get(history)
    val = experiment.evaluate(state, experiment.split.val_rows)
    record |= {k: float(np.mean([h[k] for h in history])) for k in history[0]}
    record |= {
      "val_accuracy": selection.accuracy(val),
      "val_loss": float(val.loss.compute()),
    }
    log.append(record)
    say(f"  {unit.stage.name}: validation {record['val_accuracy']:.3f}")
  return log


def table(records: list[dict[str, Any]]) -> Table:
  """One row per trial: averages over the domains that were left out."""
  rows = []
  for name in TRIALS:
    found = [r for r in records if r["trial"] == name]
    if not found:
      continue
    logs = [r["log"][-1] for r in found]
    # DeepAll has no other loss than L_cls, and its log calls it `loss`.
    last = [{"loss_cls": log["loss"], **log} for log in logs]
    row = {"trial": name, "runs": len(found)}
    for key in ("val_accuracy", "val_loss", "domain_agreement", "loss_cls"):
      values = [log[key] for log in last if key in log]
      if values:
        row[key] = statistics.fmean(values)
    rows.append(row)
  return Table("last epoch, averages over the domains left out", rows)


def _read(args) -> list[dict[str, Any]]:
  return read_jsonl(args.out) if args.out.exists() else []


def _parse(argv: list[str] | None):
  parser = Parser(
    prog="python -m benchmarks.source_trials",
    description=__doc__.splitlines()[0],
  )
  parser.add_argument("--data_dir", required=True, help="folder of the data")
  parser.add_argument("--weights", required=True, help="ImageNet ResNet-18")
  parser.add_argument(
    "--out", type=pathlib.Path, required=True, help="JSONL file to add to"
  )
  parser.add_argument(
    "--only", nargs="+", choices=TRIALS, default=list(TRIALS), help="trials"
  )
  parser.add_argument(
    "--left_out", nargs="+", default=list(_LEFT_OUT), help="domains left out"
  )
  return parser.parse_args(argv)


if __name__ == "__main__":
  with command_line("stopped; the same command goes on"):
    main()
