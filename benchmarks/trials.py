"""Trials on mini digits that chose COMEN's defaults, and their table.

  python -m benchmarks.trials --work runs/trials --out results/trials

Each trial is a sweep over all targets and two seeds that differs from others in
the settings of its line. The records are copied to OUT, and OUT/table.md is
made from all records there. What was stopped goes on where it was; a trial
whose records are all in OUT is not repeated. docs/findings.md says what was
decided.
"""

import pathlib

from absl import app, flags

from benchmarks import records, trials_table

_RUNS = 8  # Of a trial: four targets, two seeds.
# Rates drop after epochs 3 and 5 of 6. Encode starts at epoch 3, after the
# first drop, or at epoch 2, before it. The baselines have the same rates.
_COMMON = ("epochs=6", "lr_drops=(0.5, 0.83)")
_AFTER = ("stage_shares=(0.17, 0.33, 0.5)",)
_BEFORE = ("stage_shares=(0.17, 0.16, 0.67)",)


def _weights(protogr: float, protoccl: float) -> tuple[str, ...]:
  return (
    f"comen.protogr_weight={protogr}",
    f"comen.protoccl_weight={protoccl}",
  )


_OFF = _weights(0.0, 0.0)
_RAW = ("comen.prototype_form=raw", *_weights(0.1, 0.1))
_UNIT = ("comen.prototype_form=unit", *_weights(0.1, 0.1))
_CENTRED = ("comen.prototype_form=centred",)
_WEAK = (*_CENTRED, *_weights(0.1, 0.1))
_MEDIUM = (*_CENTRED, *_weights(0.5, 0.5))
_STRONG = (*_CENTRED, *_weights(2.0, 2.0))

# Name of the trial: methods, settings.
TRIALS = {
  "deepall": ("deepall", ()),
  "deepall_bn": ("deepall_bn", ()),
  "off_after": ("comen", (*_AFTER, *_OFF)),
  "off_before": ("comen", (*_BEFORE, *_OFF)),
  "medium_before": ("comen", (*_BEFORE, *_MEDIUM)),
  "strong_before": ("comen", (*_BEFORE, *_STRONG)),
  "raw_before": ("comen", (*_BEFORE, *_RAW)),
  "weak_before": ("comen", (*_BEFORE, *_WEAK)),
  "medium_after": ("comen", (*_AFTER, *_MEDIUM)),
  "strong_after": ("comen", (*_AFTER, *_STRONG)),
  "raw_after": ("comen", (*_AFTER, *_RAW)),
  "weak_after": ("comen", (*_AFTER, *_WEAK)),
  "unit_before": ("comen", (*_BEFORE, *_UNIT)),
  "true_domains": ("comen_true_domains", (*_BEFORE, *_MEDIUM)),
  "straight_through": (
    "comen",
    (*_BEFORE, *_MEDIUM, "comen.straight_through=True"),
  ),
  # Centred cosines above .5 are of one class; above 0, classes are related too.
  "threshold_0": (
    "comen",
    (*_BEFORE, *_MEDIUM, "comen.affinity_threshold=0.0"),
  ),
  "live": ("comen", (*_BEFORE, *_MEDIUM, "comen.style_from=live")),
  "shared_affine": (
    "comen",
    (*_BEFORE, *_MEDIUM, "sdnorm.per_domain_affine=False"),
  ),
  "noise_1": ("comen", (*_BEFORE, *_MEDIUM, "comen.pretrain_noise=1.0")),
  "pixels": ("comen", (*_BEFORE, *_MEDIUM, "comen.style_from=pixels")),
  "kmeans": ("comen", (*_BEFORE, *_MEDIUM, "comen.clustering=kmeans")),
  "paper": ("comen", _AFTER),  # The variant of the config that has this name.
}

_WORK = flags.DEFINE_string("work", "runs/trials", "Folder of the sweeps.")
_OUT = flags.DEFINE_string("out", "results/trials", "Folder of the records.")
_ONLY = flags.DEFINE_list("only", [], "Names of trials; all if empty.")
_JOBS = flags.DEFINE_integer("jobs", 2, "Runs at a time.", 1)


def sweep_flags(name: str, jobs: int) -> list[str]:
  """The flags of a trial's sweep, without --workdir."""
  methods, settings = TRIALS[name]
  config = "configs/digits.py" + (":paper" if name == "paper" else "")
  return [
    *("--config", config, "--targets=all", "--seeds=0,1"),
    *(f"--methods={methods}", f"--jobs={jobs}"),
    *(f"--config.{setting}" for setting in (*_COMMON, *settings)),
  ]


def main(argv: list[str]) -> None:
  """Runs the trials that are left, one after the other."""
  if len(argv) > 1:
    raise app.UsageError(f"unknown argument {argv[1]!r}")
  unknown = set(_ONLY.value) - set(TRIALS)
  if unknown:
    known = ", ".join(TRIALS)
    raise app.UsageError(f"--only={unknown.pop()}: choose among {known}")
  work, out = pathlib.Path(_WORK.value), pathlib.Path(_OUT.value)
  for name in _ONLY.value or TRIALS:
    if len(trials_table.read(out / name)) < _RUNS:
      print(f"trial {name}", flush=True)
      flags_of_it = sweep_flags(name, _JOBS.value)
      records.sweep(flags_of_it, work / name, out / name)
    table = trials_table.make(out, {n: TRIALS[n][1] for n in TRIALS})
    (out / "table.md").write_text(table, encoding="utf-8")
  print((out / "table.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
  app.run(main)
