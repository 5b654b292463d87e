"""What a whole run does when a file, the disk or a number goes bad."""

import json
import os
import random
import shutil
import subprocess
import sys

import commands
import jax.numpy as jnp
import pytest
from conftest import ROOT, make_tiny_config

from comen_jax import steps, train
from comen_jax.errors import UserError
from comen_jax.run import manifest, recovery
from comen_jax.run.checkpointing import Checkpoints

MODULE = "comen_jax.main"


class StoppedError(Exception):
  pass


def _config(data_dir, **values):
  """DeepAll in three epochs of three steps."""
  config = make_tiny_config(data_dir)
  config.method, config.epochs, config.batch_size = "deepall", 3, 120
  config.update(values)
  return config


def _stop_before(units, config, path):
  """Trains in `path` until the checkpoint `units` would be saved."""
  save = Checkpoints.save

  def stopped(self, number, state, rank):
    if number == units:
      self.wait()
      raise StoppedError
    save(self, number, state, rank)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(Checkpoints, "save", stopped)
    with pytest.raises(StoppedError):
      train.train_and_evaluate(config, str(path))


def _log(path):
  lines = (path / "metrics.jsonl").read_text().splitlines()
  return [{**json.loads(line), "seconds": 0} for line in lines]


@pytest.fixture(scope="module")
def finished(tiny_digits_dg, tmp_path_factory):
  """A run that was never stopped -> its config, folder and figures."""
  config = _config(tiny_digits_dg)
  path = tmp_path_factory.mktemp("finished") / "run"
  return config, path, train.train_and_evaluate(config, str(path))


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(
  finished, tmp_path, capsys
):
  config, whole, measured = finished
  path = tmp_path / "run"
  _stop_before(3, config, path)
  assert recovery.numbers(path / "checkpoints") == [1, 2]
  place = next((path / "checkpoints/2").glob("default/**/d/*"))
  _flip(place, random.Random(0))
  capsys.readouterr()
  assert train.train_and_evaluate(config, str(path)) == measured
  out = capsys.readouterr().out
  assert f"{path / 'checkpoints' / '2'} is damaged" in out
  assert "checkpoint 1 is used" in out
  assert "resuming after 1 of 3 units" in out
  assert _log(path) == _log(whole)


def test_another_seed_does_not_go_on_from_checkpoints_without_config(
  finished, tmp_path
):
  config, whole, _ = finished
  path = tmp_path / "run"
  shutil.copytree(whole / "checkpoints", path / "checkpoints")
  other = config.copy_and_resolve_references()
  other.seed = 1
  with pytest.raises(UserError, match=r"put config\.json back"):
    train.train_and_evaluate(other, str(path))
  assert [p.name for p in path.iterdir()] == ["checkpoints"]


@pytest.mark.parametrize(
  ("writer", "first"),
  [
    ("workdir.write_json", "config.json"),
    ("workdir.append_jsonl", "checkpoints/3"),
    ("analysis.save", "result.json"),
    ("figures.confusion", "result.json"),
    ("workdir.write_json", "result.json"),
  ],
)
def test_a_disk_that_is_full_at_any_file_leaves_a_run_that_can_go_on(
  finished, tmp_path, monkeypatch, writer, first
):
  """`first` is what the run has not got yet."""
  config, whole, measured = finished
  path = tmp_path / "run"
  if first != "config.json":
    shutil.copytree(whole, path)
    (path / "result.json").unlink()
  if first == "checkpoints/3":
    shutil.rmtree(path / first)

  def full(*_):
    raise OSError(28, "No space left on device")

  with monkeypatch.context() as patch:
    patch.setattr(f"comen_jax.run.{writer}", full)
    with pytest.raises(UserError, match=r"the disk of .* is full") as caught:
      train.train_and_evaluate(config, str(path))
  assert "\n" not in str(caught.value)
  assert train.train_and_evaluate(config, str(path)) == measured
  assert _log(path) == _log(whole)


def test_nan_keeps_the_last_good_checkpoint_and_the_run_can_go_on(
  finished, tmp_path, monkeypatch
):
  config, whole, measured = finished
  path, original = tmp_path / "run", steps.train_step

  def bad_at_step_5(state, batch, key, **options):
    state, metrics = original(state, batch, key, **options)
    bad = jnp.where(state.step == 5, jnp.nan, metrics["loss"])
    return state, {**metrics, "loss": bad}

  with monkeypatch.context() as patch:
    patch.setattr(steps, "train_step", bad_at_step_5)
    with pytest.raises(UserError, match=r"is nan at step 5 \(train, epoch 2\)"):
      train.train_and_evaluate(config, str(path))
  assert recovery.numbers(path / "checkpoints") == [1]
  manifest.verify(path / "checkpoints/1")
  assert _log(path) == _log(whole)[:1]
  assert train.train_and_evaluate(config, str(path)) == measured


@pytest.mark.parametrize("debug", [False, True])
def test_nan_ends_with_code_2_or_at_its_operation(
  debug, tiny_digits_dg, tmp_path
):
  config = _config(tiny_digits_dg)
  keys = ("method", "store_size", "image_size", "epochs", "batch_size")
  arguments = [f"--config.{key}={config[key]}" for key in keys]
  code, _, err = commands.run(
    MODULE,
    f"--config={ROOT / 'configs' / 'digits.py'}",
    f"--config.data_dir={tiny_digits_dg}",
    f"--workdir={tmp_path / 'run'}",
    *arguments,
    "--config.learning_rate=1e30",
    *(["--debug_nans"] if debug else []),
  )
  if debug:
    assert code == 1, err
    assert "FloatingPointError: invalid value (nan)" in err
  else:
    assert code == 2, err
    assert err.startswith("error: loss is ")
    assert err.count("\n") == 1


def _flip(place, rng):
  data = bytearray(place.read_bytes())
  bit = rng.randrange(8 * len(data))
  data[bit // 8] ^= 1 << bit % 8
  place.write_bytes(data)


@pytest.mark.slow
def test_comen_resumes_to_the_same_result_whatever_is_damaged(
  tiny_digits_dg, tmp_path, capsys
):
  """Flips and cuts every kind of file of the newest checkpoint, in encode."""
  config = make_tiny_config(tiny_digits_dg)
  measured = train.train_and_evaluate(config, str(tmp_path / "whole"))
  stopped = tmp_path / "stopped"
  _stop_before(8, config, stopped)
  newest = stopped / "checkpoints/7"
  rng, tried = random.Random(0), 0
  for source in sorted(p for p in newest.rglob("*") if p.is_file()):
    for damage in ("flip", "cut"):
      if not source.stat().st_size:
        continue
      path = tmp_path / "run"
      shutil.copytree(stopped, path)
      place = path / source.relative_to(stopped)
      if damage == "flip":
        _flip(place, rng)
      else:
        size = rng.randrange(place.stat().st_size)
        place.write_bytes(place.read_bytes()[:size])
      capsys.readouterr()
      assert train.train_and_evaluate(config, str(path)) == measured, place
      said = capsys.readouterr().out
      assert f"{path / 'checkpoints/7'} is damaged" in said, (place, said)
      assert "resuming after 6 of 8" in said
      assert _log(path) == _log(tmp_path / "whole")
      for number in recovery.numbers(path / "checkpoints"):
        manifest.verify(path / "checkpoints" / str(number))
      shutil.rmtree(path)
      tried += 1
  assert tried >= 12


# Each start says its exit code; standard error goes to a file per start.
ON_A_SMALL_DISK = """
set -u
mkdir -p {disk} && mount -t tmpfs -o size={size} none {disk} || exit 77
train() {{ {command} > {out}/out.$1 2> {out}/err.$1; echo $? > {out}/code.$1; }}
train full
ls {disk}/run/checkpoints > {out}/left
mount -o remount,size=200m {disk}
mount -o remount,ro {disk}
train forbidden
mount -o remount,rw {disk}
train again
cp {disk}/run/result.json {disk}/run/metrics.jsonl {out}
umount {disk}
"""

# Without our own look at the free space, Orbax finds out by itself, late.
BLIND = """
import runpy, sys
from comen_jax.run import checkpointing
checkpointing._check_room = lambda *_: None
runpy.run_module("comen_jax.main", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("blind", [False, True])
def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
  blind, tiny_digits_dg, tmp_path
):
  """On a small tmpfs in a mount namespace of its own; the disk is real."""
  if os.geteuid() != 0 or not shutil.which("unshare"):
    pytest.skip("mounting a small disk needs root and unshare")
  arguments = [
    f"--config={ROOT / 'configs' / 'digits.py'}",
    f"--config.data_dir={tiny_digits_dg}",
    "--config.store_size=16", "--config.image_size=16",
    "--config.epochs=6", "--config.stage_shares=(0.34,0.33,0.33)",
    "--config.batch_size=120", "--config.eval_batch_size=128",
    "--config.comen.pretrain_steps=50", "--config.comen.clustering=kmeans",
  ]  # fmt: skip
  whole = tmp_path / "whole"
  code, _, err = commands.run(MODULE, *arguments, f"--workdir={whole}")
  assert code == 0, err
  sizes = [
    sum(p.stat().st_blocks * 512 for p in folder.rglob("*"))
    for folder in (whole / "checkpoints").iterdir()
  ]
  start = ["-c", BLIND] if blind else ["-m", MODULE]
  disk = tmp_path / "disk"
  command = [sys.executable, *start, *arguments, f"--workdir={disk / 'run'}"]
  script = ON_A_SMALL_DISK.format(
    disk=disk,
    out=tmp_path,
    # The third or fourth of up to four at a time does not fit.
    size=int(2.5 * max(sizes)),
    command=" ".join(f"'{word}'" for word in command),
  )
  done = subprocess.run(
    ["unshare", "--mount", "sh", "-c", script],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    text=True, capture_output=True, timeout=900,
  )  # fmt: skip
  if "unshare" in done.stderr or done.returncode == 77:
    pytest.skip(f"no mount here: {done.stderr.strip()}")
  read = lambda name: (tmp_path / name).read_text()
  assert done.returncode == 0, done.stderr + read("err.again")

  assert read("code.full").strip() == "2", read("err.full")
  lines = read("err.full").splitlines()
  assert lines[-1].startswith("error: the disk of ")
  assert "is full" in lines[-1]
  # A write that fails under way may print a traceback of its library's thread.
  assert blind or len(lines) == 1, lines
  assert any(name.isdecimal() for name in read("left").split())

  assert read("code.forbidden").strip() == "2"
  assert "(Read-only file system)" in read("err.forbidden")
  assert read("err.forbidden").count("\n") == 1, read("err.forbidden")

  assert read("code.again").strip() == "0", read("err.again")
  assert "resuming after" in read("out.again")
  result = lambda folder: json.loads((folder / "result.json").read_text())
  assert result(tmp_path)["measured"] == result(whole)["measured"]
  assert _log(tmp_path) == _log(whole)
