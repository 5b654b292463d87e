"""A sweep that fails, is killed, is shared out; training stands in for itself.

The slow test at the end kills a real one.
"""

import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import commands
import jax
import pytest
from conftest import load_config

from comen_jax.errors import BusyError, UserError
from comen_jax.files import write_json
from comen_jax.run.workdir import check_config
from comen_jax.sweep import grid, one_by_one
from comen_jax.sweep.ledger import Ledger
from comen_jax.sweep.tally import Tally

ROOT = pathlib.Path(__file__).parents[2]


class KilledError(BaseException):
  """Nothing catches it, as nothing catches SIGKILL."""


class Trainer:
  """Writes what a run writes at its end; fails or dies where it is told to."""

  def __init__(self):
    self.began: list[str] = []
    self.ended: list[str] = []
    self.trouble: dict[str, BaseException] = {}

  def __call__(self, config, workdir):
    path = pathlib.Path(workdir)
    self.began.append(path.name)
    path.mkdir(parents=True, exist_ok=True)
    write_json(path / "config.json", {**config.to_dict(), "resolved": {}})
    if error := self.trouble.pop(path.name, None):
      raise error
    measured = {"target_accuracy": config.seed / 10, "target": config.target}
    write_json(
      path / "result.json", {"measured": measured, "provenance": {"commit": ""}}
    )
    self.ended.append(path.name)


@pytest.fixture
def trainer(monkeypatch):
  trainer = Trainer()
  monkeypatch.setattr(one_by_one.training, "train_and_evaluate", trainer)
  # There is nothing to clear, and it takes longer than all else here.
  monkeypatch.setattr(jax, "clear_caches", lambda: None)
  monkeypatch.setattr(gc, "collect", lambda: None)
  return trainer


def make_runs(count: int = 5) -> list[grid.Run]:
  config = load_config("digits")
  runs = []
  for seed in range(count):
    own = config.copy_and_resolve_references()
    own.seed = seed
    runs.append(grid.Run(f"run{seed}", "comen", own))
  return runs


def do(folder, runs, shard=0, shards=1):
  tally = Tally(folder, runs, Ledger(folder, shard, shards))
  one_by_one.train(tally)
  return tally.summary()


def lines(folder) -> list[dict]:
  return [
    json.loads(line)
    for place in sorted(folder.glob("results.*.jsonl"))
    for line in place.read_text().splitlines()
  ]


def test_records_are_copies_of_the_results(trainer, tmp_path):
  assert do(tmp_path, make_runs(2)) == {}
  for record in lines(tmp_path):
    result = tmp_path / "runs" / record["run"] / "result.json"
    assert record.pop("row") == "comen"
    del record["run"]
    assert record == json.loads(result.read_text())


def test_what_is_done_is_never_repeated(trainer, tmp_path, capsys):
  do(tmp_path, make_runs(3))
  do(tmp_path, make_runs(5))
  assert trainer.began == [f"run{k}" for k in range(5)]
  assert len(lines(tmp_path)) == 5
  assert "5 runs, 3 done, 2 to do" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["run0", "run2", "run4"])
def test_killed_in_a_run_it_goes_on_there(name, trainer, tmp_path):
  trainer.trouble[name] = KilledError()
  with pytest.raises(KilledError):
    do(tmp_path, make_runs())
  do(tmp_path, make_runs())
  assert sorted(trainer.ended) == [f"run{k}" for k in range(5)]
  assert sorted(r["run"] for r in lines(tmp_path)) == sorted(trainer.ended)


def test_killed_between_result_and_record_the_record_is_made_up_for(
  trainer, tmp_path, monkeypatch
):
  def die(*_):
    raise KilledError

  with monkeypatch.context() as m, pytest.raises(KilledError):
    m.setattr(Ledger, "add", die)
    do(tmp_path, make_runs())
  assert trainer.ended == ["run0"] and not lines(tmp_path)
  do(tmp_path, make_runs())
  assert trainer.ended == [f"run{k}" for k in range(5)]
  assert [r["run"] for r in lines(tmp_path)] == trainer.ended


def test_killed_inside_a_line_the_line_is_written_anew(trainer, tmp_path):
  do(tmp_path, make_runs(3))
  place = tmp_path / "results.0-of-1.jsonl"
  whole = place.read_bytes()
  place.write_bytes(whole[:-20])
  do(tmp_path, make_runs(3))
  assert place.read_bytes() == whole
  assert len(trainer.began) == 3


def test_one_failure_does_not_stop_the_others(trainer, tmp_path, capsys):
  trainer.trouble["run1"] = RuntimeError("device\nout of memory")
  trainer.trouble["run3"] = UserError("the loss is nan: lower learning_rate")
  failed = do(tmp_path, make_runs())
  assert list(failed) == ["run1", "run3"]
  assert trainer.ended == ["run0", "run2", "run4"]
  out = capsys.readouterr().out
  assert "2 of 5 runs failed" in out
  assert "RuntimeError: device" in out and "lower learning_rate" in out
  text = (tmp_path / "runs" / "run1" / "error.txt").read_text()
  assert "out of memory" in text and "Traceback" in text
  assert do(tmp_path, make_runs()) == {}
  assert sorted(r["run"] for r in lines(tmp_path)) == [
    f"run{k}" for k in range(5)
  ]


def test_shards_write_files_of_their_own_and_share_the_work(trainer, tmp_path):
  runs = make_runs()
  for shard in (1, 0):
    own, i, n = grid.part(runs, f"{shard}/2")
    do(tmp_path, own, i, n)
  names = {place.name for place in tmp_path.glob("results.*")}
  assert names == {"results.0-of-2.jsonl", "results.1-of-2.jsonl"}
  do(tmp_path, runs)  # One job over all of it finds nothing left.
  assert len(trainer.began) == len(lines(tmp_path)) == 5


def test_a_run_that_another_job_is_at_is_left_to_it(trainer, tmp_path, capsys):
  trainer.trouble["run1"] = BusyError("run1 is being trained")
  assert do(tmp_path, make_runs(3)) == {}
  assert trainer.ended == ["run0", "run2"]
  assert "other jobs train them: run1" in capsys.readouterr().out


def test_another_config_in_the_same_folder_is_refused(trainer, tmp_path):
  (run,) = make_runs(1)
  do(tmp_path, [run])
  run.config.epochs = 7
  place = tmp_path / "runs" / run.name
  with pytest.raises(UserError, match="epochs was 50, now 7"):
    check_config(place, run.config.to_dict())


def command(arguments, tmp_path):
  return subprocess.Popen(
    [
      sys.executable, "-m", "comen_jax.sweep",
      "--config", str(ROOT / "configs" / "digits.py"),
      f"--workdir={tmp_path / 'sweep'}", *arguments,
    ],
    env={
      **os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1",
    },
    text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
  )  # fmt: skip


def test_dry_run_lists_and_makes_nothing(tiny_digits_dg, tmp_path):
  process = command(
    [f"--config.data_dir={tiny_digits_dg}", "--dry_run"], tmp_path
  )
  out, err = process.communicate(timeout=120)
  assert process.returncode == 0, err
  assert "to do  digits_dg-svhn-comen-m3-seed0" in out
  assert "12 runs: 0 done, 0 begun, 12 to do" in out
  assert not (tmp_path / "sweep").exists()


def test_a_dry_run_needs_no_weights_and_a_real_one_needs_them_first(
  tiny_digits_dg, tmp_path
):
  flags = [
    "--config=configs/pacs.py", f"--config.data_dir={tiny_digits_dg}",
    "--config.dataset=digits_dg", "--config.pretrained=no/x.safetensors",
    f"--workdir={tmp_path / 'sweep'}", "--targets=svhn",
  ]  # fmt: skip
  code, out, err = commands.run("comen_jax.sweep", *flags, "--dry_run")
  assert (code, err) == (0, "")
  assert "to do  digits_dg-svhn-comen-m3-seed0" in out
  code, _, err = commands.run("comen_jax.sweep", *flags)
  assert code == 2 and err.count("\n") == 1
  assert err.startswith("error: pretrained=no/x.safetensors does not exist")


def test_a_flag_that_no_row_reads_is_refused(tmp_path):
  code, _, err = commands.run(
    "comen_jax.sweep", "--config=configs/digits.py", "--dry_run",
    "--config.irm.weight=2", f"--workdir={tmp_path / 'sweep'}",
  )  # fmt: skip
  assert code == 2 and err.count("\n") == 1
  assert "config.irm.weight is not read by deepall, deepall_bn, comen" in err


@pytest.mark.parametrize("module", ["main", "sweep"])
def test_help_lists_the_flags(module):
  _, out, _ = commands.run(f"comen_jax.{module}", "--help")
  assert "--config: Config file" in out
  assert "--workdir" in out


@pytest.mark.slow
def test_killed_for_real_it_ends_with_the_same_records(
  tiny_digits_dg, tmp_path
):
  arguments = [
    f"--config.data_dir={tiny_digits_dg}",
    "--targets=svhn", "--methods=deepall,comen", "--seeds=0,1",
    "--config.epochs=3", "--config.stage_shares=(0.34, 0.33, 0.33)",
    "--config.batch_size=40", "--config.eval_batch_size=128",
    "--config.comen.pretrain_steps=50", "--config.comen.clustering=kmeans",
  ]  # fmt: skip

  def records(folder):
    return {r["run"]: r["measured"] for r in lines(folder / "sweep")}

  process = command(arguments, tmp_path / "never")
  _, err = process.communicate(timeout=600)
  assert process.returncode == 0, err
  often = tmp_path / "often"
  for moment in ("[1/4]", "train epoch 2/3", "target, last epoch", "[2/4]",
                 "discover epoch", "preparing encode", "[4/4"):  # fmt: skip
    process = command(arguments, often)
    for line in process.stdout:
      if line.startswith(moment):
        time.sleep(0.02)
        break
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
  process = command(arguments, often)
  out, err = process.communicate(timeout=600)
  assert process.returncode == 0, err
  assert "4 of 4 runs are done" in out
  assert records(often) == records(tmp_path / "never")
  assert len(lines(often / "sweep")) == 4
