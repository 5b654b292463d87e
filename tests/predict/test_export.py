"""The exported artefact: what `predict` says, without our code."""

import json
import re
import subprocess
import sys
import textwrap

import commands
import jax
import jax.export
import numpy as np
import pytest
from conftest import ROOT, load_config
from made_runs import CLASSES, fingerprint, made_run, save_rows

from comen_jax import experiment as experiment_lib
from comen_jax.nn.registry import shapes
from comen_jax.predict import __main__ as predict
from comen_jax.predict import export
from comen_jax.predict.trained import Trained
from comen_jax.train_state import TrainState


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
  """A folder with artefact, pictures, and predictions.json of them."""
  folder = tmp_path_factory.mktemp("exported")
  experiment, _ = made_run(load_config("digits"), folder / "run")
  rows = np.arange(7) * 30
  paths = save_rows(experiment, rows, folder / "pictures")
  before = fingerprint(folder / "run")
  code, out, err = commands.run(
    "comen_jax.predict", "--run", folder / "run",
    "--export", folder / "model.stablehlo", "--json", *paths,
  )  # fmt: skip
  assert code == 0, err
  assert err.startswith("wrote ")
  assert fingerprint(folder / "run") == before
  (folder / "predictions.json").write_text(out)
  return folder, experiment.dataset.images[rows]


@pytest.mark.parametrize("batch", [1, 7])
def test_artefact_gives_the_probabilities_of_predict(exported, batch):
  folder, images = exported
  predicted = json.loads((folder / "predictions.json").read_text())[:batch]
  model = jax.export.deserialize((folder / "model.stablehlo").read_bytes())
  assert model.platforms == ("cpu", "cuda", "tpu")
  found = model.call(images[:batch])
  assert found["probabilities"].shape == (batch, 4)
  for name, expected in (
    ("probabilities", [list(p["probabilities"].values()) for p in predicted]),
    ("domain_probabilities", [p["domain_probabilities"] for p in predicted]),
  ):
    np.testing.assert_allclose(found[name], expected, atol=1e-5)


def test_example_of_the_docs_runs_without_comen_jax(exported, tmp_path):
  folder, _ = exported
  text = (ROOT / "docs" / "predict.md").read_text()
  block = re.search(r"^    import json, jax.*?(?=^\S)", text, re.M | re.S)[0]
  example = textwrap.dedent(block)
  for name in ("model.stablehlo", "model.stablehlo.json"):
    (tmp_path / name).symlink_to(folder / name)
  (tmp_path / "image.jpg").symlink_to(folder / "pictures" / "003.png")
  # First on the path: whoever imports comen_jax gets this.
  (tmp_path / "comen_jax.py").write_text("raise ImportError('comen_jax')")
  check = "import sys; assert 'comen_jax' not in sys.modules\n"
  done = subprocess.run(
    [sys.executable, "-c", example + check],
    cwd=tmp_path, text=True, capture_output=True,
  )  # fmt: skip
  assert done.returncode == 0, done.stderr
  predicted = json.loads((folder / "predictions.json").read_text())[3]
  name, number = done.stdout.split()
  assert name == predicted["class"]
  assert float(number) == pytest.approx(predicted["probability"], abs=1e-5)


def test_file_beside_it_names_classes_and_input(exported):
  folder, _ = exported
  about = json.loads((folder / "model.stablehlo.json").read_text())
  assert about["class_names"] == list(CLASSES)
  assert (about["size"], about["num_domains"]) == (32, 3)
  assert about["run"] == {"target": "s"}
  assert not list(folder.glob(".*"))  # No drafts.


def test_export_needs_no_pictures(exported, tmp_path, capsys):
  folder, _ = exported
  place = tmp_path / "again.stablehlo"
  assert predict.main(["--run", f"{folder}/run", "--export", str(place)]) == 0
  assert capsys.readouterr().out == ""
  assert place.stat().st_size > 100_000


@pytest.mark.parametrize(
  ("backbone", "dtype"),
  [
    ("digits_cnn", "float32"),
    ("alexnet", "float32"),
    ("resnet18", "float32"),
    ("resnet50", "bfloat16"),
  ],
)
def test_backbones_lower_for_every_platform(backbone, dtype):
  """Weights as shapes: those of AlexNet would take a gigabyte."""
  config = load_config("pacs:quick")
  config.backbone, config.dtype = backbone, dtype
  model, views = experiment_lib.network(config, 4)
  _, variables = shapes(model, config.image_size)
  state = TrainState(
    {"backbone": variables["params"]}, variables["batch_stats"], (), (), ()
  )
  trained = Trained(model, views, state, CLASSES, config.store_size, {})
  lowered = export.lower(trained.function(), trained.size, state)
  assert set(lowered.platforms) == set(export.PLATFORMS)
  found = jax.tree.unflatten(lowered.out_tree, lowered.out_avals)
  assert [str(d) for d in found["probabilities"].shape] == ["b", "4"]
  assert [str(d) for d in found["domain_probabilities"].shape] == ["b", "3"]
