"""A run's folder: whose it is, and what a later start finds in it."""

import copy
import json
import subprocess
import sys

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from comen_jax.errors import BusyError, UserError
from comen_jax.run.workdir import Workdir, check_config

CONFIG = {
  "method": "comen",
  "seed": 0,
  "data_dir": "",
  "lr_drops": (0.4, 0.8),  # A tuple, as configs have them.
  "comen": {"portion": 0.3},
  "deepall": {},
  "logging": {"tensorboard": True, "every": 10},
}
DATA = {"dataset": "mini_digits", "manifest": "abc", "target": "pasted"}


def _changed(**values):
  return copy.deepcopy(CONFIG) | values


def _bytes(folder):
  return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def _records(count):
  return [
    {"unit": i, "stage": "warmup", "step": 10 * i, "loss": 1 / (i + 1)}
    for i in range(count)
  ]


def _run(folder, count):
  """A run that was stopped after `count` units."""
  run = Workdir(str(folder), CONFIG, DATA)
  run.resume(0, 0, tensorboard=False)
  for record in _records(count):
    run.log(record)
  run.close()
  return folder / "metrics.jsonl"


def test_a_new_folder_is_made_and_told_what_it_is(tmp_path):
  run = Workdir(str(tmp_path / "a/b"), CONFIG, DATA)
  assert run.path == tmp_path / "a/b"
  stored = json.loads((run.path / "config.json").read_text())
  assert stored["resolved"] == DATA
  assert stored["lr_drops"] == [0.4, 0.8]
  assert stored["comen"] == {"portion": 0.3}
  assert run.records == []
  assert run.result() is None


@pytest.mark.parametrize(
  ("config", "data", "said"),
  [
    (_changed(seed=1), DATA, "seed was 0, now 1"),
    (_changed(comen={"portion": 0.5}), DATA, "comen.portion was 0.3, now 0.5"),
    (_changed(lr_drops=(0.4,)), DATA, "lr_drops was [0.4, 0.8], now [0.4]"),
    (_changed(new="key"), DATA, "new was '(absent)', now 'key'"),
    (_changed(comen={}), DATA, "comen.portion was 0.3, now '(absent)'"),
    (CONFIG, DATA | {"dataset": "digits_dg"}, "now 'digits_dg'"),
    (CONFIG, DATA | {"manifest": "def"}, "manifest was 'abc', now 'def'"),
    (CONFIG, DATA | {"target": "street"}, "target was 'pasted', now 'street'"),
  ],
)
def test_another_config_or_data_set_is_refused_and_nothing_is_overwritten(
  tmp_path, config, data, said
):
  _run(tmp_path, 2)
  before = _bytes(tmp_path)
  with pytest.raises(UserError) as error:
    Workdir(str(tmp_path), config, data)
  assert said in str(error.value)
  assert str(tmp_path) in str(error.value)
  assert "\n" not in str(error.value)
  assert _bytes(tmp_path) == before


@pytest.mark.parametrize(
  "config",
  [
    CONFIG,
    _changed(data_dir="/elsewhere"),
    _changed(logging={"tensorboard": False, "every": 1, "new": 2}),
  ],
)
def test_data_may_move_and_logging_may_change(tmp_path, config):
  log = _run(tmp_path, 2)
  before = _bytes(tmp_path)
  run = Workdir(str(tmp_path), config, DATA)
  run.resume(2, 10, tensorboard=False)
  assert run.records == _records(2)
  assert _bytes(tmp_path) == before
  assert log.exists()


@pytest.mark.parametrize("units", [0, 1, 3, 4])
def test_resuming_cuts_the_log_back_to_what_the_checkpoint_vouches_for(
  tmp_path, units
):
  log = _run(tmp_path, 4)
  lines = log.read_text().splitlines(keepends=True)
  run = Workdir(str(tmp_path), CONFIG, DATA)
  run.resume(units, 0, tensorboard=False)
  assert run.records == _records(4)[:units]
  assert log.read_text() == "".join(lines[:units])
  for record in _records(4)[units:]:
    run.log(record)
  assert run.records == _records(4)
  assert log.read_text() == "".join(lines)


@pytest.mark.parametrize("left", [1, 20])
def test_a_line_cut_off_by_a_kill_is_no_record(tmp_path, left):
  log = _run(tmp_path, 4)
  lines = log.read_text().splitlines(keepends=True)
  log.write_text("".join(lines[:3]) + lines[3][:left])
  run = Workdir(str(tmp_path), CONFIG, DATA)
  run.resume(3, 0, tensorboard=False)
  assert run.records == _records(3)
  run.log(_records(4)[3])
  assert log.read_text() == "".join(lines)


def test_a_log_that_lost_records_of_the_checkpoint_is_not_resumed(tmp_path):
  # The figures of the run would silently be of its second half.
  log = _run(tmp_path, 4)
  log.unlink()
  run = Workdir(str(tmp_path), CONFIG, DATA)
  with pytest.raises(ValueError):
    run.resume(4, 0, tensorboard=False)


def test_a_record_is_on_disk_when_log_returns(tmp_path):
  run = Workdir(str(tmp_path), CONFIG, DATA)
  run.resume(0, 0, tensorboard=False)
  for count, record in enumerate(_records(3), 1):
    run.log(record)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == _records(count)


def test_no_drafts_are_left(tmp_path):
  _run(tmp_path, 2)
  run = Workdir(str(tmp_path), CONFIG, DATA)
  run.resume(1, 0, tensorboard=False)
  run.finish({"measured": {}})
  names = {p.name for p in tmp_path.iterdir()}
  assert names == {"config.json", "metrics.jsonl", "result.json"}


@pytest.mark.parametrize(
  "left", ["checkpoints/3", "metrics.jsonl", "result.json"]
)
def test_a_run_without_its_config_is_refused(tmp_path, left):
  # Another seed would silently go on from it: a false record.
  _run(tmp_path, 2)
  (tmp_path / "metrics.jsonl").unlink()
  (tmp_path / left).mkdir(parents=True)
  (tmp_path / "config.json").unlink()
  with pytest.raises(UserError, match=r"config\.json back, or") as error:
    Workdir(str(tmp_path), _changed(seed=1), DATA)
  assert str(tmp_path / left) in str(error.value)
  assert "\n" not in str(error.value)
  assert not (tmp_path / "config.json").exists()


def test_a_folder_that_was_left_before_its_first_checkpoint_is_used(tmp_path):
  (tmp_path / "checkpoints").mkdir()
  (tmp_path / "log.txt").write_text("of a worker")
  Workdir(str(tmp_path), CONFIG, DATA)
  assert (tmp_path / "config.json").exists()


def test_a_damaged_config_is_one_line_that_does_not_say_remove_it(tmp_path):
  _run(tmp_path, 2)
  (tmp_path / "config.json").write_text("{")
  for use in (
    lambda: Workdir(str(tmp_path), CONFIG, DATA),
    lambda: check_config(tmp_path, CONFIG),
  ):
    with pytest.raises(UserError, match=r"config\.json is damaged: put back"):
      use()


def _events(place):
  """Reads TFRecords: length, its checksum, an event, its checksum."""
  data, found = place.read_bytes(), []
  while data:
    end = 12 + int.from_bytes(data[:8], "little")
    found.append(Event.FromString(data[12:end]))
    data = data[end + 4 :]
  return found


def test_tensorboard_events_are_written_only_when_asked_for(tmp_path):
  run = Workdir(str(tmp_path), CONFIG, DATA)
  run.resume(0, 0, tensorboard=True)
  run.log(_records(1)[0])
  run.close()
  (events,) = tmp_path.glob("events.out.tfevents.*")
  found = _events(events)
  assert found[0].file_version == "brain.Event:2"
  # A resumed run hides what it is about to write again.
  assert (found[1].step, found[1].session_log.status) == (1, SessionLog.START)
  assert [v.tag for e in found for v in e.summary.value] == ["warmup/loss"]
  _run(tmp_path / "silent", 1)
  assert not list((tmp_path / "silent").glob("events*"))


def test_a_finished_run_gives_its_result(tmp_path):
  result = {"measured": {"target_accuracy": 0.1 + 0.2}, "provenance": {"a": 1}}
  run = Workdir(str(tmp_path), CONFIG, DATA)
  assert run.result() is None
  run.finish(result)
  assert run.result() == result
  assert Workdir(str(tmp_path), CONFIG, DATA).result() == result


def test_the_result_is_the_same_bytes_whatever_the_order_of_its_keys(tmp_path):
  texts = []
  for result in ({"a": 1, "b": 0.1}, {"b": 0.1, "a": 1}):
    run = Workdir(str(tmp_path), CONFIG, DATA)
    run.finish(result)
    texts.append((tmp_path / "result.json").read_bytes())
  assert texts[0] == texts[1]


_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_two_processes_do_not_train_in_one_folder(tmp_path):
  run = Workdir(str(tmp_path), CONFIG, DATA)
  other = subprocess.Popen(
    [sys.executable, "-c", _HOLDER, str(tmp_path / ".lock")],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
  )  # fmt: skip
  assert other.stdout.readline() == "held\n"
  with pytest.raises(BusyError, match="being trained by another process"):
    run.lock()
  other.kill()  # The system frees what a killed process held.
  other.communicate(timeout=30)
  run.lock()
  Workdir(str(tmp_path), CONFIG, DATA).lock()  # The same one may start anew.
