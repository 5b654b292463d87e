"""launch/local.sh, with commands that need no jax."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from launch_helpers import start_script

SCRIPT = pathlib.Path(__file__).parents[2] / "launch" / "local.sh"
WAITS = "import time; print('up', flush=True); time.sleep(60)"
# Ends as our commands do: 75 after TERM, 130 after Ctrl-C.
SAVES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
print("up", flush=True)
try:
  time.sleep(60)
except KeyboardInterrupt:
  sys.exit(130)
"""


def start(count: int, code: str) -> subprocess.Popen:
  return start_script(
    SCRIPT, str(count), sys.executable, "-c", f"import os\n{code}"
  )


def wait_until_up(job: subprocess.Popen, count: int) -> None:
  for _ in range(count):
    assert job.stdout.readline().endswith("up\n")


def test_each_process_knows_its_number_and_all_have_one_address():
  job = start(
    3,
    "e = os.environ; print(e['COMEN_PROCESS_ID'], e['COMEN_NUM_PROCESSES'],"
    " e['COMEN_COORDINATOR'])",
  )
  out, _ = job.communicate(timeout=30)
  found = sorted(re.findall(r"(\d): (\d) 3 127\.0\.0\.1:(\d+)\n", out))
  assert [line[:2] for line in found] == [("0", "0"), ("1", "1"), ("2", "2")]
  assert len({line[2] for line in found}) == 1
  assert job.returncode == 0


def test_output_and_errors_are_prefixed_and_the_last_line_is_whole():
  job = start(1, "print('out', flush=True); os.write(2, b'no newline')")
  out, _ = job.communicate(timeout=30)
  assert out == "0: out\n0: no newline\n"


@pytest.mark.parametrize(
  ("failure", "code"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)]
)
def test_when_one_fails_the_others_end_and_its_code_counts(failure, code):
  fails = f"if os.environ['COMEN_PROCESS_ID'] == '1': {failure}\n"
  began = time.monotonic()
  job = start(3, fails + SAVES)
  _, err = job.communicate(timeout=30)
  assert job.returncode == code
  assert f"process 1 ended with exit code {code}" in err
  assert time.monotonic() - began < 10


@pytest.mark.parametrize(
  ("code", "number", "expected"),
  [
    (SAVES, signal.SIGTERM, 75),
    (SAVES, signal.SIGINT, 130),
    # TERM came before the process could handle it: it is to start again.
    (WAITS, signal.SIGTERM, 75),
  ],
)
def test_a_signal_reaches_every_process(code, number, expected):
  job = start(2, code)
  wait_until_up(job, 2)
  job.send_signal(number)
  _, err = job.communicate(timeout=30)
  assert job.returncode == expected
  assert err.count("ended with exit code") == 2


def test_a_preempted_process_stops_the_others_with_75():
  """Some schedulers tell one process only."""
  job = start(2, "print(os.getpid(), flush=True)\n" + SAVES)
  lines = [job.stdout.readline() for _ in range(4)]
  pid = next(
    int(x[3:]) for x in lines if x.startswith("1: ") and x[3].isdigit()
  )
  os.kill(pid, signal.SIGTERM)
  job.communicate(timeout=30)
  assert job.returncode == 75


def test_a_process_that_ignores_term_is_killed(monkeypatch):
  monkeypatch.setenv("GRACE", "1")
  deaf = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if os.environ['COMEN_PROCESS_ID'] == '1':\n"
    "  import time; time.sleep(1); os._exit(3)\n"
  )
  job = start(2, deaf + WAITS)
  _, err = job.communicate(timeout=30)
  assert job.returncode == 3
  assert "process 0 ended with exit code 137" in err


@pytest.mark.parametrize(
  "arguments", [(), ("2",), ("0", "true"), ("x", "true")]
)
def test_a_wrong_call_is_answered_by_the_usage(arguments):
  done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)
  assert done.returncode == 2
  assert done.stderr == "usage: launch/local.sh N command ...\n"
