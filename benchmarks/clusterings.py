"""Which style and which clustering: chosen without domain labels.

  python -m benchmarks.clusterings --data_dir D --weights FILE \\
    --out results/clusterings.json

For each target that is left out, the mixed sources are clustered with several
seeds. A seed draws the network's first weights, the portion of the images and
the start of the clustering. The criterion is how well the labels of two seeds
agree: the adjusted Rand index, 1 if they are equal, 0 by chance. The NMI with
the true domains stands beside it for evaluation; it chooses nothing.
"""

import itertools
import pathlib
import statistics
from collections.abc import Iterator

import jax
import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks import steps as bench
from benchmarks.alternate import say
from benchmarks.made import load_config
from benchmarks.tables import Table, render
from comen_jax import process
from comen_jax.data import registry
from comen_jax.errors import Parser, command_line
from comen_jax.experiment import Experiment, build
from comen_jax.files import write_json
from comen_jax.methods.comen import clustering, discovery
from comen_jax.nn.backbone import pixels_and_differences
from comen_jax.nn.style import style_statistics

_PORTION = 0.3  # comen.portion of the configs.
_DATA = ("mini_digits", "digits_dg", "pacs")


def main() -> None:
  args = _parse()
  process.start()
  rows = []
  for name in args.data:
    config = load_config("pacs:quick" if name == "pacs" else "digits")
    config.data_dir = "" if name == "mini_digits" else args.data_dir
    config.pretrained = args.weights if name == "pacs" else ""
    config.comen.style_from = "live"
    dataset = registry.load(config.dataset, config.data_dir, config.store_size)
    for target in dataset.domain_names:
      rows += _rows(config, dataset, target, args.seeds)
      say(f"{name}: target {target} done")
  tables = [Table("agreement of seeds, and NMI with the truth", rows)]
  tables.append(Table("averages over targets", _averages(rows)))
  for table in tables:
    print(render(table) + "\n", flush=True)
  if args.out:
    args.out.parent.mkdir(parents=True, exist_ok=True)
    record = {t.title: t.rows for t in tables}
    write_json(args.out, {"machine": bench.machine(), **record})


def _rows(config, dataset, target: str, seeds: int) -> list[dict]:
  """One row per style and clustering."""
  labels: dict[tuple[str, str], list[np.ndarray]] = {}
  for seed in range(seeds):
    config.target, config.seed = target, seed
    experiment = build(config, dataset)
    rows = experiment.sources.rows
    train = np.flatnonzero(np.isin(rows, experiment.sources.train_rows))
    portion = np.random.default_rng(seed).choice(
      train, round(_PORTION * len(train)), replace=False
    )
    for style_name, style in _styles(experiment, bool(config.pretrained)):
      mean, std = discovery.statistics(style[portion])
      for method in clustering.CLUSTERINGS:
        found = clustering.cluster(
          (style - mean) / std, portion, config.num_domains, method, seed
        )
        labels.setdefault((style_name, method), []).append(found)
  truth = dataset.domains[rows]
  return [
    {
      "data": dataset.name,
      "left out": target,
      "style": style_name,
      "clustering": method,
      "seeds agree": _agreement(found),
      "smallest share": float(
        min(np.bincount(x, minlength=config.num_domains).min() for x in found)
        / len(rows)
      ),
      "NMI": statistics.fmean(
        normalized_mutual_info_score(truth, x) for x in found
      ),
    }
    for (style_name, method), found in labels.items()
  ]


def _styles(
  experiment: Experiment, pretrained: bool
) -> Iterator[tuple[str, np.ndarray]]:
  """Styles [N, 2C] of all source rows, under each name."""
  sources, key = experiment.sources, experiment.key
  state = experiment.init()
  look = lambda state: discovery.styles(
    state, sources, experiment.feature_step, sources.rows, key, False
  )
  yield "start", look(state)

  @jax.jit
  def of_pixels(images):
    return style_statistics(
      pixels_and_differences(experiment.views.evaluate(images))
    )

  images = experiment.dataset.images
  yield (
    "pixels",
    np.concatenate(
      [
        np.asarray(of_pixels(images[rows]), np.float64)
        for rows in np.array_split(sources.rows, len(sources.rows) // 500)
      ]
    ),
  )
  if pretrained:
    return  # ImageNet has warmed it up.
  for batch in experiment.train_batches(0):
    state, _ = experiment.train_steps[0](state, batch, key)
  yield "after an epoch of warm-up", look(state)


def _agreement(labels: list[np.ndarray]) -> float:
  return statistics.fmean(
    adjusted_rand_score(a, b) for a, b in itertools.combinations(labels, 2)
  )


def _averages(rows: list[dict]) -> list[dict]:
  groups: dict[tuple[str, str, str], list[dict]] = {}
  for row in rows:
    key = row["data"], row["style"], row["clustering"]
    groups.setdefault(key, []).append(row)
  mean = lambda found, name: statistics.fmean(row[name] for row in found)
  return [
    {
      "data": data,
      "style": style,
      "clustering": method,
      **{name: mean(found, name) for name in ("seeds agree", "NMI")},
      "smallest share": min(row["smallest share"] for row in found),
    }
    for (data, style, method), found in groups.items()
  ]


def _parse():
  parser = Parser(
    prog="python -m benchmarks.clusterings",
    description=__doc__.splitlines()[0],
  )
  parser.add_argument("--data_dir", default="", help="folder of the data sets")
  parser.add_argument("--weights", default="", help="ImageNet ResNet-18")
  parser.add_argument("--seeds", type=int, default=4, help="number of seeds")
  parser.add_argument(
    "--data", nargs="+", choices=_DATA, default=list(_DATA), help="data sets"
  )
  parser.add_argument("--out", type=pathlib.Path, help="JSON file to write")
  return parser.parse_args()


if __name__ == "__main__":
  with command_line("stopped"):
    main()
