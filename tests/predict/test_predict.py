"""Predictions from a run's folder alone."""

import csv
import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
from conftest import ROOT, load_config
from made_runs import CLASSES, fingerprint, made_run, save_rows

from comen_jax import sharding
from comen_jax.errors import UserError
from comen_jax.metrics import probabilities
from comen_jax.predict import __main__ as predict
from comen_jax.predict import trained


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  """COMEN's run, 19 pictures, and what training says of them."""
  folder = tmp_path_factory.mktemp("made")
  experiment, state = made_run(load_config("digits"), folder / "run")
  rows = np.arange(19) * 13
  paths = save_rows(experiment, rows, folder / "pictures" / "inner")
  return folder / "run", paths, experiment.outputs(state, rows)


def cpu_seconds():
  """CPU time of the processes that were started here and have ended."""
  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  return used.ru_utime + used.ru_stime


def run(capsys, *argv):
  """-> exit code, standard output, standard error."""
  code = predict.main([str(a) for a in argv])
  out, err = capsys.readouterr()
  return code, out, err


def test_probabilities_are_those_of_training(made, capsys):
  path, paths, outputs = made
  before = fingerprint(path)
  # Three batches of eight, the last padded.
  code, out, err = run(
    capsys, "--run", path, "--json", "--batch_size=8", *paths
  )
  assert (code, err) == (0, "")
  found = json.loads(out)
  assert [f["picture"] for f in found] == paths
  assert all(tuple(f["probabilities"]) == CLASSES for f in found)
  probs = np.array([list(f["probabilities"].values()) for f in found])
  domains = np.array([f["domain_probabilities"] for f in found])
  np.testing.assert_allclose(probs, probabilities(outputs.logits), atol=1e-5)
  np.testing.assert_allclose(
    domains, probabilities(outputs.domain_logits), atol=1e-5
  )
  best = outputs.logits.argmax(axis=1)
  assert [f["class"] for f in found] == [CLASSES[k] for k in best]
  np.testing.assert_array_equal(
    [f["probability"] for f in found], probs.max(axis=1)
  )
  assert np.ptp(probs, axis=0).max() > 0.05  # Not all alike.
  assert np.ptp(domains, axis=0).max() > 0.01
  assert fingerprint(path) == before


def test_one_device_restores_what_eight_saved(made):
  one = sharding.make(jax.devices()[:1])
  network = trained.load(str(made[0]), one.replicated)
  leaves = jax.tree.leaves((network.state.params, network.state.batch_stats))
  assert all(leaf.devices() == {jax.devices()[0]} for leaf in leaves)
  assert list(network.state.params) == ["backbone"]
  assert (network.num_domains, network.size) == (3, 32)


def test_table_and_csv_of_a_folder_say_the_same(made, capsys):
  path, paths, _ = made
  folder = os.path.dirname(os.path.dirname(paths[0]))
  _, table, _ = run(capsys, "--run", path, folder)
  _, text, _ = run(capsys, folder, "--csv", "--run", path)
  rows = list(csv.reader(io.StringIO(text)))
  assert rows[0] == ["picture", "class", "probability", "d0", "d1", "d2"]
  assert [row[0] for row in rows[1:]] == paths
  lines = table.splitlines()
  assert len({len(line) for line in lines}) == 1
  assert lines[0].split() == rows[0]
  for line, row in zip(lines[1:], rows[1:]):
    assert line.split()[:2] == row[:2]
    shown = np.array(line.split()[2:], float)
    np.testing.assert_allclose(shown, np.array(row[2:], float), atol=5.1e-5)


def test_bad_pictures_are_named_and_skipped(made, tmp_path):
  """As a user types it, in a process with one device."""
  path, paths, _ = made
  (tmp_path / "a.png").write_bytes(b"not a picture")
  shutil.copy(paths[0], tmp_path / "b.png")
  whole = pathlib.Path(paths[1]).read_bytes()
  (tmp_path / "c.png").write_bytes(whole[: len(whole) // 2])
  shutil.copy(paths[1], tmp_path / "d.png")
  before = cpu_seconds()
  done = subprocess.run(
    [sys.executable, "-m", "comen_jax.predict", "--run", path, "--csv",
     tmp_path, "gone.png"],
    cwd=ROOT, text=True, capture_output=True,
  )  # fmt: skip
  assert done.returncode == 1, done.stderr
  assert cpu_seconds() - before < 4
  rows = list(csv.DictReader(io.StringIO(done.stdout)))
  assert [os.path.basename(row["picture"]) for row in rows] == [
    "b.png",
    "d.png",
  ]
  lines = done.stderr.splitlines()
  assert lines[-1] == "3 of 5 images were skipped"
  for line, name in zip(lines, ("a.png", "c.png", "gone.png"), strict=False):
    assert line.startswith("skipped: ")
    assert name in line


def test_control_characters_in_names_are_escaped(made, tmp_path, capsys):
  path, paths, _ = made
  good, bad = tmp_path / "a\n\x1b[31m.png", tmp_path / "b\r.png"
  shutil.copy(paths[0], good)
  os.mkfifo(bad)
  code, out, err = run(capsys, "--run", path, tmp_path)
  assert code == 1
  assert len(out.splitlines()) == 2
  assert f"{tmp_path}/a\\n\\x1b[31m.png" in out
  skipped = f"skipped: {tmp_path}/b\\r.png cannot be read: it is not a regular"
  assert err.startswith(skipped)
  assert not {"\x1b", "\r"} & set(out + err)
  _, out, _ = run(capsys, "--run", path, "--csv", good)
  (row,) = csv.DictReader(io.StringIO(out))
  assert row["picture"] == str(good)


def test_nothing_but_bad_pictures_is_still_json(made, capsys):
  code, out, err = run(capsys, "--run", made[0], "--json", "gone.png")
  assert (code, json.loads(out)) == (1, [])
  assert "gone.png cannot be read: No such file" in err


def test_run_without_latent_domains(tmp_path, capsys):
  config = load_config("digits")
  config.method = "deepall"
  experiment, state = made_run(config, tmp_path / "run")
  rows = np.array([1, 200])
  paths = save_rows(experiment, rows, tmp_path / "pictures")
  _, out, _ = run(capsys, "--run", tmp_path / "run", "--json", *paths)
  found = json.loads(out)
  assert all("domain_probabilities" not in f for f in found)
  np.testing.assert_allclose(
    [list(f["probabilities"].values()) for f in found],
    probabilities(experiment.outputs(state, rows).logits),
    atol=1e-5,
  )
  _, out, _ = run(capsys, "--run", tmp_path / "run", "--csv", paths[0])
  assert out.startswith("picture,class,probability\n")


@pytest.mark.parametrize(
  ("remove", "text"),
  [
    (".", "no such folder"),
    ("config.json", "is not a run"),
    ("result.json", "is not finished.*training command again"),
    ("analysis.npz", "is damaged.*analysis.npz"),
    ("checkpoints/2", "has no checkpoints/2"),
  ],
)
def test_what_is_no_finished_run_is_one_line(made, tmp_path, remove, text):
  run = tmp_path / "run"
  shutil.copytree(made[0], run)
  gone = run / remove
  gone.unlink() if gone.is_file() else shutil.rmtree(gone)
  with pytest.raises(UserError, match=text) as caught:
    predict.main(["--run", str(run), made[1][0]])
  assert str(run) in str(caught.value)
  assert "\n" not in str(caught.value)


def _data_of_arrays(folder):
  """Files with the values of arrays; which one has what differs by run."""
  return sorted(folder.glob("default/**/d/*"))


def test_a_damaged_checkpoint_is_refused_in_one_line(made, tmp_path, capsys):
  """A flipped bit would be restored as a wrong number, without a word."""
  folder = tmp_path / "run"
  shutil.copytree(made[0], folder)
  place = _data_of_arrays(folder / "checkpoints/2")[0]
  data = bytearray(place.read_bytes())
  data[len(data) // 2] ^= 1
  place.write_bytes(data)
  with pytest.raises(UserError, match=r"has changed.*back a copy") as caught:
    predict.main(["--run", str(folder), made[1][0]])
  assert str(folder / "checkpoints/2") in str(caught.value)
  assert "\n" not in str(caught.value)
  assert capsys.readouterr().out == ""


def test_a_run_of_an_older_version_is_used_with_a_warning(
  made, tmp_path, capsys
):
  path, paths, _ = made
  folder = tmp_path / "run"
  shutil.copytree(path, folder)
  for place in folder.glob("checkpoints/*/sha256.json"):
    place.unlink()
  before = fingerprint(folder)
  expected = run(capsys, "--run", path, "--csv", paths[0])[1]
  code, out, err = run(capsys, "--run", folder, "--csv", paths[0])
  assert (code, out) == (0, expected)
  assert err.startswith("WARNING: ") and err.count("\n") == 1
  assert "checkpoints/2 has no checksums" in err
  assert fingerprint(folder) == before
  # What Orbax itself finds is one line, too. In a folder of its own: nothing
  # of it can still be in a cache.
  broken = tmp_path / "broken"
  shutil.copytree(folder, broken)
  for place in _data_of_arrays(broken / "checkpoints/2"):
    place.unlink()
  with pytest.raises(UserError, match="is damaged") as caught:
    predict.main(["--run", str(broken), paths[0]])
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("argv", "text"),
  [
    ([], "no images"),
    (["--json", "--csv", "a.png"], "not allowed with"),
    (["--batch_size=0", "a.png"], "batch_size=0"),
    (["none/*.png"], r"none/\*.png matches no pictures"),
    (["--export", "none/m.stablehlo"], "no folder none"),
  ],
)
def test_bad_arguments_are_one_line(argv, text):
  with pytest.raises(UserError, match=text):
    predict.main(["--run", "anything", *argv])
