"""A hundred pictures of one's own: they train, are reported, are swept."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, load_config
from PIL import Image

from comen_jax import train
from comen_jax.data import registry
from comen_jax.report import __main__ as report
from comen_jax.sweep import grid

DOMAINS, CLASSES = ("ink", "oil", "pen", "web"), ("ant", "bee", "cat")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
  """Draws 100 pictures: 25 of each domain, the class is the place of a bar.

  The bar is darker than the paper in all domains and colours. If its contrast
  were the other way round on the target, the two places without a bar would
  look like bars, and 0 % of the target would be right.
  """
  root = tmp_path_factory.mktemp("own") / "my pictures (2)"
  rng = np.random.default_rng(0)
  for d, domain in enumerate(DOMAINS):
    paper = rng.integers(120, 250, 3)
    for i in range(25):
      k = i % len(CLASSES)
      folder = root / domain / CLASSES[k]
      folder.mkdir(parents=True, exist_ok=True)
      picture = rng.normal(paper, 10 + 5 * d, (40, 30, 3))
      picture[:, 10 * k : 10 * k + 8] = paper / 3
      picture = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
      picture.save(folder / f"{i}.png")
  return root


def test_a_run_on_a_hundred_pictures_is_named_after_their_folder(
  pictures, tmp_path, capsys
):
  """On eight devices, with the batches of the config. COMEN is slow below."""
  config = load_config("folder")
  config.data_dir, config.target = str(pictures), "web"
  config.method, config.epochs = "deepall", 3
  measured = train.train_and_evaluate(config, str(tmp_path / "run"))
  assert measured["dataset"] == "my_pictures_2"
  assert measured["batch_size"] == 64  # Of 66: eight devices share a batch.
  said = capsys.readouterr().out
  assert "batch_size=128 is lowered to 64" in said
  kept = json.loads((tmp_path / "run" / "config.json").read_text())
  assert kept["resolved"]["dataset"] == "folder"
  assert kept["resolved"]["batch_size"] == 64

  # The folder may move: the run still belongs to it.
  other = pictures.rename(pictures.with_name("moved"))
  config.data_dir = str(other)
  assert train.train_and_evaluate(config, str(tmp_path / "run")) == measured
  assert "is finished" in capsys.readouterr().out
  other.rename(pictures)

  report.main([str(tmp_path / "run"), "--out", str(tmp_path / "report")])
  page = (tmp_path / "report" / "index.html").read_text()
  assert "my pictures 2" in page and ">folder<" not in page


def test_a_sweep_names_its_runs_after_the_folder(pictures):
  dataset = registry.load("folder", str(pictures), 32)
  runs = grid.make(load_config("folder"), dataset, "all", "0", "deepall")
  assert [run.name for run in runs] == [
    f"my_pictures_2-{domain}-deepall-seed0" for domain in DOMAINS
  ]


@pytest.mark.slow
@pytest.mark.parametrize(
  ("devices", "settings"),
  [
    (1, ()),
    (4, ()),
    # What docs/methods.md recommends.
    (1, ("--config.method=deepall_bn", "--config.augment=randconv")),
  ],
)
def test_folders_learn_from_a_hundred_pictures(
  pictures, devices, settings, tmp_path
):
  """As a user types it."""
  count = f"--xla_force_host_platform_device_count={devices}"
  done = subprocess.run(
    [sys.executable, "-m", "comen_jax.main", "--config=configs/folder.py",
     f"--config.data_dir={pictures}", "--config.target=web",
     f"--workdir={tmp_path / 'run'}", *settings],
    cwd=ROOT, text=True, capture_output=True,
    env={**os.environ, "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} {count}"},
  )  # fmt: skip
  assert done.returncode == 0, done.stderr
  result = json.loads((tmp_path / "run" / "result.json").read_text())
  assert result["measured"]["batch_size"] == 66 // devices * devices
  # By chance, 0.33.
  assert result["measured"]["val_accuracy"] > 0.8
  assert result["measured"]["target_accuracy"] > 0.8
