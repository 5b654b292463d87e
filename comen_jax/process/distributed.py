"""A run of several processes: how they start, agree and end.

Every process runs the same program on its own devices; process 0 prints and
writes. Who starts them tells each one its number: a launcher of ours, Slurm's
`srun`, or the machines of a TPU slice. Any other process is alone.
"""

import contextlib
import glob
import importlib.util
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import jax
from jax.experimental import multihost_utils
from orbax.checkpoint import multihost

from comen_jax import stopping
from comen_jax.errors import UserError
from comen_jax.process import slurm

_LAUNCHER = ("COMEN_COORDINATOR", "COMEN_NUM_PROCESSES", "COMEN_PROCESS_ID")
_HEARTBEAT_SECONDS = 30  # After this, a silent process counts as dead.
_SHUTDOWN_SECONDS = 60  # Process 0 may still draw figures at the end.
_ALIKE_SECONDS = 5  # Within this, all processes meet the same error.
# What errors say when another process has gone, on CPU, GPU and in Orbax.
_LOST = (
  "gloo", "nccl", "connection reset", "connection closed", "socket closed",
  "barrier timed out", "heartbeat", "coordination service", "task died",
)  # fmt: skip


@contextlib.contextmanager
def session() -> Iterator[None]:
  """Starts jax.distributed if this is one of several processes, and ends it.

  Call it before the first array is made. If the body fails, the process ends
  here and at once: the usual exit would wait for the others.
  """
  arguments = find(os.environ)
  if arguments is None:
    yield
    return
  jax.distributed.initialize(
    **arguments,
    heartbeat_timeout_seconds=_HEARTBEAT_SECONDS,
    shutdown_timeout_seconds=_SHUTDOWN_SECONDS,
  )
  stopping.listen_together(multihost_utils.reached_preemption_sync_point)
  try:
    yield
  except SystemExit as end:  # All processes end alike, Stopped included.
    first = jax.process_index() == 0
    jax.distributed.shutdown()
    if first:
      raise
    _end(int(end.code or 0))
  except BaseException as error:
    _leave(error)
  jax.distributed.shutdown()


def find(environ: Mapping[str, str]) -> dict[str, Any] | None:
  """Finds out who started this process.

  Args:
    environ: environment variables.

  Returns:
    The arguments of `jax.distributed.initialize`, or None for one process.
  """
  if any(name in environ for name in _LAUNCHER):
    return _launched(environ)
  if found := slurm.find(environ):
    return found
  return {} if _on_tpu_slice(environ) else None


def _launched(environ: Mapping[str, str]) -> dict[str, Any] | None:
  """Reads the variables of our launchers."""
  missing = [name for name in _LAUNCHER if not environ.get(name)]
  if missing:
    raise UserError(
      f"{', '.join(missing)} missing: set all of {', '.join(_LAUNCHER)}, or"
      " none for one process"
    )
  coordinator, count, number = (environ[name] for name in _LAUNCHER)
  host, colon, port = coordinator.rpartition(":")
  if not (host and colon and port.isdigit()):
    raise UserError(f"COMEN_COORDINATOR={coordinator}: give host:port")
  if not (count.isdigit() and int(count)):
    raise UserError(f"COMEN_NUM_PROCESSES={count}: give 1 or more")
  if not (number.isdigit() and int(number) < int(count)):
    raise UserError(
      f"COMEN_PROCESS_ID={number}: give 0 to {int(count) - 1}, since"
      f" COMEN_NUM_PROCESSES={count}"
    )
  if int(count) == 1:
    return None
  arguments = {
    "coordinator_address": coordinator,
    "num_processes": int(count),
    "process_id": int(number),
    "cluster_detection_method": "deactivate",
  }
  if host == "localhost" or host.startswith("127."):
    arguments["coordinator_bind_address"] = coordinator  # Not to the network.
  return arguments


def _on_tpu_slice(environ: Mapping[str, str]) -> bool:
  """Whether there are TPUs here, and maybe on other machines of a slice.

  jax then asks the machine who the others are.
  """
  if "tpu" not in environ.get("JAX_PLATFORMS", "tpu"):
    return False
  # GKE names the machines; elsewhere only a metadata server knows.
  names = ("TPU_PROCESS_ADDRESSES", "TPU_WORKER_HOSTNAMES")
  hosts = next((environ[name] for name in names if environ.get(name)), None)
  if hosts is None and "TPU_SKIP_MDS_QUERY" in environ:
    return False
  if hosts is not None and "," not in hosts:
    return False
  chips = glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*")
  return bool(chips) and importlib.util.find_spec("libtpu") is not None


def _leave(error: BaseException) -> NoReturn:
  """Says what went wrong, once if all processes met it, and ends at once."""
  first = jax.process_index() == 0
  who = "" if first else f"process {jax.process_index()}: "
  if isinstance(error, UserError):
    if first:
      _say(f"error: {error}")
    if not _all_are_here() and not first:
      _say(f"error: {who}{error}")
    _end(2)
  if isinstance(error, KeyboardInterrupt):
    if first:
      _say("stopped; the same command resumes")
    _end(130)
  if is_lost(error):
    _say(
      f"error: {who}another process of this run has ended: start the same"
      " command again, it resumes"
    )
  else:
    traceback.print_exception(error)
  _end(1)


def is_lost(error: BaseException) -> bool:
  """Whether an error says that another process has gone."""
  text = str(error).lower()
  return isinstance(error, ValueError | RuntimeError) and any(
    sign in text for sign in _LOST
  )


def _all_are_here() -> bool:
  """Waits a little for the other processes to meet the same error."""
  try:
    multihost.get_barrier_sync_fn()(
      key="comen_jax_error", timeout_ms=1000 * _ALIKE_SECONDS
    )
  except Exception:  # Whatever it is, they are not here.
    return False
  if jax.process_index() == 0:
    time.sleep(0.5)  # The others would be aborted if process 0 went first.
  return True


def _say(line: str) -> None:
  print(line, file=sys.stderr)


def _end(code: int) -> NoReturn:
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)
