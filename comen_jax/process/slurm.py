"""Reads what Slurm tells a task of `srun`: its number, and its GPUs."""

import re
from collections.abc import Mapping
from typing import Any


def find(environ: Mapping[str, str]) -> dict[str, Any] | None:
  """Returns arguments of `jax.distributed.initialize`; None for one task.

  A batch script without `srun` is one process, whatever the job's tasks. An
  interactive shell may be a step of one task in a job of several.
  """
  if not environ.get("SLURM_STEP_NODELIST"):
    return None
  count = environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS")
  if not count or int(count) < 2:
    return None
  return {
    "cluster_detection_method": "slurm",  # It finds the coordinator.
    "num_processes": int(count),
    "process_id": int(environ["SLURM_PROCID"]),
    "local_device_ids": _gpus(environ),
  }


def _gpus(environ: Mapping[str, str]) -> tuple[int, ...]:
  """Indices of the task's own among the visible GPUs; () for all of them.

  jax by itself would give each task one GPU, also the only task of a machine.
  """
  tasks = _tasks_here(environ)
  if tasks == 1:
    return ()
  task = int(environ["SLURM_LOCALID"])
  visible = environ.get("CUDA_VISIBLE_DEVICES", "")
  count = len([name for name in visible.split(",") if name.strip()])
  on_node = environ.get("SLURM_GPUS_ON_NODE", "")
  if not count:
    return (task,)
  if count < tasks or (on_node.isdigit() and count < int(on_node)):
    return ()  # Slurm has bound GPUs to each task: it sees only its own.
  share = count // tasks
  return tuple(range(share * task, share * (task + 1)))


def _tasks_here(environ: Mapping[str, str]) -> int:
  """Number of tasks of this step on this machine."""
  text = environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get(
    "SLURM_TASKS_PER_NODE", "1"
  )
  counts = []  # "2(x3),1" is three machines of two tasks and one of one.
  for tasks, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
    counts += [int(tasks)] * int(times or 1)
  return counts[int(environ.get("SLURM_NODEID", 0))]
