"""launch/tpu_pod.sh with a stand-in for gcloud: each worker is a folder."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from launch_helpers import start_script

SCRIPT = pathlib.Path(__file__).parents[2] / "launch" / "tpu_pod.sh"
# As gcloud does: all workers at once, then the first exit code that is not 0.
GCLOUD = r"""#!/usr/bin/env bash
[ "$4" = describe ] && { echo "$*" >>calls; cat state; exit; }
command=${*: -1} command=${command#--command=}
echo "${*:1:$#-1}" >>calls
for w in 0 1; do
  (cd "$w" && HOME=$PWD exec bash -c "$command") & pids[w]=$!
done
for w in 0 1; do
  wait "${pids[w]}"; ended=$?
  [ "${code:-0}" = 0 ] && code=$ended
done
exit "$code"
"""
SSH = "compute tpus tpu-vm ssh slice --zone=zone --worker=all"
# The n-th start of a worker ends with the n-th of the exit codes.
ENDS_WITH = """
import os, sys
with open("starts", "a+") as f:
  print(os.getcwd(), sys.argv[1:], file=f, flush=True)
  f.seek(0)
  sys.exit(int(sys.argv[1].split()[len(f.readlines()) - 1]))
"""
SAVES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
sys.stdout.write("up\\n")  # At once: two workers write to one pipe.
sys.stdout.flush()
time.sleep(60)
"""


@pytest.fixture
def slice_of_two(tmp_path, monkeypatch) -> pathlib.Path:
  """A folder with gcloud's stand-in, and the homes of two workers."""
  (tmp_path / "bin").mkdir()
  for worker in "01":
    (tmp_path / worker / "comen_jax").mkdir(parents=True)
  (tmp_path / "state").write_text("READY\n")
  gcloud = tmp_path / "bin" / "gcloud"
  gcloud.write_text(GCLOUD)
  gcloud.chmod(0o755)
  monkeypatch.setenv("PATH", f"{gcloud.parent}:{os.environ['PATH']}")
  monkeypatch.setenv("PAUSE", "0.1")
  assert shutil.which("gcloud") == str(gcloud)
  return tmp_path


def start(folder: pathlib.Path, *command: str) -> subprocess.Popen:
  return start_script(
    SCRIPT, "slice", "zone", sys.executable, "-c", *command, folder=folder
  )


def calls(folder: pathlib.Path) -> list[str]:
  return (folder / "calls").read_text().splitlines()


def test_the_command_runs_on_every_worker_with_its_own_words(slice_of_two):
  job = start(slice_of_two, ENDS_WITH, "0", "two words", "$HOME 'a'")
  _, err = job.communicate(timeout=30)
  assert job.returncode == 0, err
  for worker in "01":
    folder = slice_of_two / worker / "comen_jax"
    started = (folder / "starts").read_text()
    assert (
      started
      == f"{folder} {['0', 'two words', chr(36) + 'HOME ' + repr('a')]}\n"
    )
  assert calls(slice_of_two) == [SSH]


@pytest.mark.parametrize(
  ("codes", "starts", "code"),
  [
    ("75 75 0", 3, 0),  # Preempted twice.
    ("137 0", 2, 0),  # A worker died.
    ("2 0", 1, 2),  # A wrong setting stays wrong.
    ("1 1 1 1 1", 3, 1),  # Given up after MAX_RESTARTS.
  ],
)
def test_it_starts_again_where_that_can_help(
  slice_of_two, monkeypatch, codes, starts, code
):
  monkeypatch.setenv("MAX_RESTARTS", "2")
  job = start(slice_of_two, ENDS_WITH, codes)
  job.communicate(timeout=30)
  assert job.returncode == code
  assert calls(slice_of_two).count(SSH) == starts


def test_a_slice_that_was_taken_away_is_named(slice_of_two):
  (slice_of_two / "state").write_text("PREEMPTED\n")
  job = start(slice_of_two, ENDS_WITH, "255")
  _, err = job.communicate(timeout=30)
  assert job.returncode == 75
  assert "slice is PREEMPTED: create or start it" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_workers_and_not_only_the_connection(
  slice_of_two, number
):
  job = start(slice_of_two, SAVES, "comen_jax")
  assert [job.stdout.readline() for _ in range(2)] == ["up\n", "up\n"]
  job.send_signal(number)
  job.communicate(timeout=30)
  assert job.returncode == 75
  assert calls(slice_of_two) == [SSH, SSH]


def test_a_process_of_an_earlier_start_is_ended_first(slice_of_two):
  old = subprocess.Popen([sys.executable, "-c", SAVES, "comen_jax"])
  other = subprocess.Popen([sys.executable, "-c", SAVES, "something else"])
  (slice_of_two / "0" / ".comen.pid").write_text(f"{old.pid}\n")
  (slice_of_two / "1" / ".comen.pid").write_text(f"{other.pid}\n")
  threading.Thread(target=old.wait).start()  # An ended child must be reaped.
  try:
    job = start(slice_of_two, ENDS_WITH, "0")
    job.communicate(timeout=30)
    assert job.returncode == 0
    assert old.wait(10) in (75, -signal.SIGTERM)
    assert other.poll() is None
  finally:
    other.kill()
    other.wait()
