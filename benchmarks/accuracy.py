"""The tables of accuracy: mini digits, Digits-DG and PACS.

  python -m benchmarks.accuracy --data_dir D --weights FILE

The sweeps are done in the order of `TABLES`. What was stopped goes on where it
was, and a run whose record is in OUT is not repeated: on another machine, the
same command at the same commit trains what is left. Records and training logs
are copied to OUT as runs end. docs/results.md shows the tables; `python -m
comen_jax.report OUT/digits_dg` makes them.

Digits-DG and PACS are test sets: their settings were fixed before
(docs/findings.md). Mini digits is the development set, and needs no data.
"""

import pathlib
from typing import NamedTuple

from benchmarks import records
from comen_jax.errors import Parser, UserError, command_line


class Sweep(NamedTuple):
  """A part of a table.

  Attributes:
    folder: folder of its records; parts of one table share it.
    config: name of the config.
    rows: flags that choose the runs.
    settings: settings of the config that the runs share.
    needs_data: whether it reads images from --data_dir.
  """

  folder: str
  config: str
  rows: tuple[str, ...]
  settings: tuple[str, ...] = ()
  needs_data: bool = True


# The paper's config with fewer epochs: a run takes minutes on a CPU core.
_DIGITS = ("epochs=15",)
_MINI = ("epochs=6",)
_ALL_SEEDS = "--methods=deepall,deepall_bn,comen"
_ABLATION = (
  "sdnorm,protogr,protoccl,protogr_protoccl,sdnorm_protogr,sdnorm_protoccl,"
  "protogr_protoccl_bn,comen_true_domains"
)
# FACT's pictures without its teacher; with COMEN they are comen_fact.
_AMPLITUDE = "deepall_bn_amplitude"
# What docs/methods.md recommends, from the rows of mini digits: RandConv's
# pictures without its agreement; with COMEN they are comen_randconv.
_RECOMMENDED = "deepall_bn_randconv"
# Of label_free_bn, what the sweep `digits` has not got. Its runs are older than
# some keys of the config, so that a sweep with them in it would refuse them.
_RIVALS = (
  "comen_mixstyle,comen_randconv,comen_fact,mixstyle_bn,mmld_bn,rsc_bn,"
  "sfa_s_bn,sfa_a_bn,fact_bn,sagnet,selfreg_bn,jigen_bn,randconv_bn,eisnet_bn"
)

TABLES = {
  "digits": Sweep(
    "digits_dg", "digits", (_ALL_SEEDS, "--seeds=0,1,2"), _DIGITS
  ),
  "ablation": Sweep(
    "digits_dg", "digits", (f"--methods={_ABLATION}", "--seeds=0"), _DIGITS
  ),
  "pacs": Sweep(
    "pacs", "pacs:quick", ("--methods=deepall,comen", "--seeds=0,1")
  ),
  # A folder of its own: its runs have the same names.
  "pacs_15": Sweep(
    "pacs_15",
    "pacs:quick",
    ("--methods=deepall,comen", "--seeds=0,1"),
    ("epochs=15",),
  ),
  "more_seeds": Sweep(
    "digits_dg", "digits", (_ALL_SEEDS, "--seeds=3,4"), _DIGITS
  ),
  "num_domains": Sweep(
    "digits_dg",
    "digits",
    ("--methods=comen", "--num_domains=2,3,4,5", "--targets=mnist_m,svhn"),
    _DIGITS,
  ),
  # Rivals with BatchNorm, as COMEN also normalises. Without norms, six epochs
  # of mini digits are too few, and some runs do not learn at all.
  "mini_rivals": Sweep(
    "mini_rivals",
    "digits",
    (f"--methods=label_free_bn,{_AMPLITUDE}", "--seeds=0,1"),
    _MINI,
    needs_data=False,
  ),
  # The best rows again, for the recommendation in docs/methods.md.
  "mini_best": Sweep(
    "mini_rivals",
    "digits",
    (
      f"--methods=deepall_bn,comen,comen_randconv,comen_fact,{_AMPLITUDE}",
      "--seeds=2,3",
    ),
    _MINI,
    needs_data=False,
  ),
  # RandConv's pictures without its agreement and without COMEN: by the method,
  # which led to the recommendation, and as an augmentation.
  "mini_control": Sweep(
    "mini_control",
    "digits",
    ("--methods=randconv_bn", "--seeds=0,1,2,3"),
    (*_MINI, "randconv.weight=0.0"),
    needs_data=False,
  ),
  # SelfReg's distance between logits alone, which slows it (docs/findings.md).
  "mini_selfreg": Sweep(
    "mini_selfreg",
    "digits",
    ("--methods=selfreg_bn", "--seeds=0"),
    (*_MINI, "selfreg.feature_weight=0.0"),
    needs_data=False,
  ),
  "mini_recommended": Sweep(
    "mini_rivals",
    "digits",
    (f"--methods={_RECOMMENDED}", "--seeds=0,1,2,3"),
    _MINI,
    needs_data=False,
  ),
  "rivals": Sweep(
    "digits_dg",
    "digits",
    (f"--methods={_RIVALS},{_AMPLITUDE}", "--seeds=0"),
    _DIGITS,
  ),
  "recommended": Sweep(
    "digits_dg",
    "digits",
    (f"--methods={_RECOMMENDED}", "--seeds=0,1,2"),
    _DIGITS,
  ),
  # COMEN beside the same pictures: added when its first seed was known.
  "recommended_comen": Sweep(
    "digits_dg",
    "digits",
    ("--methods=comen_randconv", "--seeds=0,1,2"),
    _DIGITS,
  ),
}


def flags(name: str, data_dir: str, weights: str, jobs: int) -> list[str]:
  """The flags of a sweep, without --workdir."""
  sweep = TABLES[name]
  file, _, variant = sweep.config.partition(":")
  settings = list(sweep.settings)
  if sweep.needs_data:
    settings.append(f"data_dir={data_dir}")
  if _is_pacs(name):
    settings.append(f"pretrained={weights}")
  return [
    "--config",
    f"configs/{file}.py" + (f":{variant}" if variant else ""),
    *sweep.rows,
    f"--jobs={jobs}",
    *(f"--config.{setting}" for setting in settings),
  ]


def main(argv: list[str] | None = None) -> None:
  """Does the sweeps that are asked for, one after the other."""
  args = _parse(argv)
  if any(_is_pacs(n) for n in args.only) and not args.weights:
    raise UserError(
      "--weights is missing: give the file of ResNet-18, or --only"
    )
  if not args.data_dir and any(TABLES[n].needs_data for n in args.only):
    raise UserError("--data_dir is missing: give the folder of the data")
  for name in args.only:
    print(f"sweep {name}", flush=True)
    folder = TABLES[name].folder
    words = flags(name, args.data_dir, args.weights, args.jobs)
    records.sweep(words, args.work / folder, args.out / folder)


def _is_pacs(name: str) -> bool:
  return TABLES[name].config.startswith("pacs")


def _parse(argv: list[str] | None):
  parser = Parser(
    prog="python -m benchmarks.accuracy", description=__doc__.splitlines()[0]
  )
  parser.add_argument("--data_dir", default="", help="folder of the data")
  parser.add_argument("--weights", default="", help="ImageNet ResNet-18")
  parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
  parser.add_argument(
    "--only", nargs="+", choices=TABLES, default=list(TABLES), help="sweeps"
  )
  for name, default in (("work", "runs"), ("out", "results")):
    parser.add_argument(
      f"--{name}",
      type=pathlib.Path,
      default=pathlib.Path(default),
      help="folder of the %s (default: %%(default)s)"
      % ("sweeps" if name == "work" else "records"),
    )
  return parser.parse_args(argv)


if __name__ == "__main__":
  with command_line("stopped; the same command goes on"):
    main()
