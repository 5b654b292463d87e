"""Who starts a process, and what that makes of it."""

import pytest

from comen_jax.errors import UserError
from comen_jax.process import distributed

LAUNCHER = {
  "COMEN_COORDINATOR": "10.0.0.1:1234",
  "COMEN_NUM_PROCESSES": "4",
  "COMEN_PROCESS_ID": "3",
}
SRUN = {
  "SLURM_JOB_ID": "7",
  "SLURM_STEP_NODELIST": "n[0-1]",
  "SLURM_NTASKS": "2",
  "SLURM_STEP_NUM_TASKS": "2",
  "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
  "SLURM_PROCID": "1",
  "SLURM_LOCALID": "0",
  "SLURM_NODEID": "1",
}


def test_a_process_is_alone_unless_it_is_told_otherwise():
  assert distributed.find({}) is None
  assert distributed.find({"TPU_WORKER_HOSTNAMES": "localhost"}) is None
  one = {**LAUNCHER, "COMEN_NUM_PROCESSES": "1", "COMEN_PROCESS_ID": "0"}
  assert distributed.find(one) is None


def test_a_launcher_gives_address_count_and_number():
  assert distributed.find(LAUNCHER) == {
    "coordinator_address": "10.0.0.1:1234",
    "num_processes": 4,
    "process_id": 3,
    "cluster_detection_method": "deactivate",
  }


def test_on_one_machine_the_network_is_not_listened_to():
  here = {**LAUNCHER, "COMEN_COORDINATOR": "127.0.0.1:5"}
  found = distributed.find(here)
  assert found["coordinator_bind_address"] == "127.0.0.1:5"


@pytest.mark.parametrize(
  ("name", "value", "text"),
  [
    ("COMEN_COORDINATOR", "", "COMEN_COORDINATOR missing: set all of"),
    ("COMEN_COORDINATOR", "host", "COMEN_COORDINATOR=host: give host:port"),
    ("COMEN_NUM_PROCESSES", "0", "COMEN_NUM_PROCESSES=0: give 1 or more"),
    ("COMEN_NUM_PROCESSES", "two", "COMEN_NUM_PROCESSES=two"),
    ("COMEN_PROCESS_ID", "4", "COMEN_PROCESS_ID=4: give 0 to 3"),
    ("COMEN_PROCESS_ID", "", "COMEN_PROCESS_ID missing"),
  ],
)
def test_a_wrong_variable_is_one_line(name, value, text):
  with pytest.raises(UserError, match=text) as caught:
    distributed.find({**LAUNCHER, name: value})
  assert "\n" not in str(caught.value)


def test_tasks_of_srun_are_processes_of_one_run():
  found = distributed.find(SRUN)
  assert found == {
    "cluster_detection_method": "slurm",
    "num_processes": 2,
    "process_id": 1,
    "local_device_ids": (),  # All GPUs of the machine.
  }


@pytest.mark.parametrize(
  "change",
  [
    {"SLURM_STEP_NODELIST": ""},  # A batch script without srun.
    {"SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "4"},  # A shell in a step.
    {"SLURM_STEP_NUM_TASKS": "", "SLURM_NTASKS": "1"},
  ],
)
def test_one_task_of_slurm_is_alone(change):
  assert distributed.find({**SRUN, **change}) is None


@pytest.mark.parametrize(
  ("per_node", "visible", "on_node", "own"),
  [
    ("1(x2)", "0,1,2,3,4,5,6,7", "8", ()),
    ("8(x2)", "0,1,2,3,4,5,6,7", "8", (5,)),
    ("2(x2)", "0,1,2,3", "4", (2, 3)),
    ("2(x2)", "0,1,2,3", "8", ()),  # Bound by --gpus-per-task=4.
    ("8(x2)", "0", "8", ()),  # Bound by --gpus-per-task=1.
    ("4,2", "", "", (1,)),
    ("4,1", "0,1", "2", ()),
  ],
)
def test_tasks_on_one_machine_share_its_gpus(per_node, visible, on_node, own):
  tasks = {
    "SLURM_STEP_TASKS_PER_NODE": per_node,
    "SLURM_LOCALID": {"8(x2)": "5"}.get(per_node, "1"),
    "CUDA_VISIBLE_DEVICES": visible,
    "SLURM_GPUS_ON_NODE": on_node,
  }
  assert distributed.find({**SRUN, **tasks})["local_device_ids"] == own


@pytest.mark.parametrize(
  ("hosts", "several"), [("a,b", True), ("a", False), (None, True)]
)
def test_a_tpu_machine_asks_for_the_others_of_its_slice(
  hosts, several, monkeypatch
):
  monkeypatch.setattr(distributed.glob, "glob", lambda _: ["/dev/accel0"])
  monkeypatch.setattr(
    distributed.importlib.util, "find_spec", lambda name: name
  )
  environ = {"TPU_WORKER_HOSTNAMES": hosts} if hosts else {}
  assert distributed.find(environ) == ({} if several else None)
  assert distributed.find({**environ, "JAX_PLATFORMS": "cpu"}) is None


@pytest.mark.parametrize(
  ("error", "lost"),
  [
    (ValueError("UNKNOWN: Gloo all-reduce failed: Connection reset"), True),
    (RuntimeError("DEADLINE_EXCEEDED: Barrier timed out"), True),
    (ValueError("shapes differ"), False),
    (KeyError("gloo"), False),
  ],
)
def test_a_lost_process_is_told_from_a_bug(error, lost):
  assert distributed.is_lost(error) == lost
