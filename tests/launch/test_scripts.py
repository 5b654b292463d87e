"""All of launch/: short, without mistakes that a checker finds."""

import pathlib
import shutil
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "launch"
SCRIPTS = ("local.sh", "slurm.sbatch", "tpu_pod.sh")


@pytest.mark.parametrize("name", [*SCRIPTS, "k8s.yaml"])
def test_a_script_is_short_and_commented(name):
  lines = (FOLDER / name).read_text().splitlines()
  assert len(lines) <= 40
  assert sum("# " in line for line in lines) >= 6


@pytest.mark.parametrize("name", SCRIPTS)
def test_bash_can_read_it(name):
  subprocess.run(["bash", "-n", FOLDER / name], check=True)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="no shellcheck")
@pytest.mark.parametrize("name", [*SCRIPTS, "../tests/slurm.sh"])
def test_shellcheck_finds_nothing(name):
  done = subprocess.run(
    ["shellcheck", "--shell=bash", FOLDER / name],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout
