"""What a reader can do next, as commands that fit the runs of the report."""

import shlex

from comen_jax.report.document import Cell, Section, Table
from comen_jax.report.records import Record
from comen_jax.variants import VARIANTS, nearest

_SEEDS = "0,1,2"
_METHODS = "deepall,deepall_bn,comen"
# A sweep sets these itself.
_SWEPT = ("--config.target", "--config.seed", "--config.method",
          "--config.norm", "--config.num_domains")  # fmt: skip


def of(records: list[Record]) -> Section:
  """Returns the section "What next" on the runs of a report."""
  rows = []
  seeds = {r.measured["seed"] for r in records}
  if len(records) == 1 or len(seeds) == 1:
    what = "compare with DeepAll" if len(records) == 1 else "train more seeds"
    what += ": three seeds, every target"
    if _is_no_row(records[0]):
      what += " (no row of a sweep has the settings of this run)"
    rows.append((what, _sweep(records[0])))
    rows.append(("then make the page again", "python -m comen_jax.report W"))
  trained = [r for r in records if _is_trained(r)]
  if trained:
    best = max(trained, key=lambda r: r.measured["val_accuracy"])
    run = shlex.quote(str(best.folder))
    rows.append(
      (
        "classify images of your own (network of best source validation)",
        f"python -m comen_jax.predict --run {run} IMAGES",
      )
    )
  rows.append(
    (
      "train on images of your own",
      "python -m comen_jax.main --config configs/folder.py"
      " --config.data_dir=ROOT --config.target=NAME",
    )
  )
  return Section(
    "What next",
    tables=(
      Table(
        "Commands to go on with",
        ("To", "Command"),
        tuple((Cell(what), Cell(command)) for what, command in rows),
        ("Words in capitals are yours to choose: W is a new folder.",),
      ),
    ),
  )


def _is_trained(record: Record) -> bool:
  return bool(record.folder and (record.folder / "checkpoints").is_dir())


def _sweep(record: Record) -> str:
  """Returns the command of a sweep with the settings of a run."""
  methods, (row, _) = _METHODS, nearest(record.row)
  if row not in _METHODS.split(","):
    methods += f",{row}"
  # What the row sets, the sweep gives to this row alone.
  own = VARIANTS[row].settings if row in VARIANTS else {}
  taken = (*_SWEPT, *(f"--config.{key}" for key in own))
  return " ".join(
    [
      "python -m comen_jax.sweep",
      *_settings(record.provenance.get("command", ""), taken),
      f"--workdir W --targets=all --seeds={_SEEDS} --methods={methods}",
    ]
  )


def _is_no_row(record: Record) -> bool:
  """Whether a run differs from every row in what rows are named by."""
  _, settings = nearest(record.row)
  keys = {"norm", *(key for row in VARIANTS.values() for key in row.settings)}
  return any(f"{key.split('.')[-1]}=" in settings for key in keys)


def _settings(command: str, taken: tuple[str, ...]) -> list[str]:
  """Returns the flags --config and --config.* of a command, quoted.

  Those that the sweep sets itself, `taken`, are left out.
  """
  try:
    words = shlex.split(command)
  except ValueError:  # Its quotes do not match.
    words = []
  found = []
  for n, word in enumerate(words):
    name, equals, _ = word.partition("=")
    if name != "--config" and not name.startswith("--config."):
      continue
    if name in taken:
      continue
    found.append(shlex.quote(word))
    if not equals and words[n + 1 :]:
      found.append(shlex.quote(words[n + 1]))
  return found or ["--config CONFIG"]
