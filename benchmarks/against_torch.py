"""Training and evaluation steps: ours against the PyTorch peer's."""

import contextlib
from functools import partial

from benchmarks import flops, made
from benchmarks.alternate import How, Times, Worker, alternate
from benchmarks.tables import Table

# OMP_WAIT_POLICY stays at its default, with which PyTorch's users run. Idle
# threads sleep soon by themselves; the table shows the CPU that they take.
_MODULES = {"ours": "benchmarks.jax_steps", "torch": "benchmarks.torch_steps"}
# The peer once more, with the allocator's settings of our commands.
_KEPT = "torch, memory kept"


def measure(network: str, how: How) -> list[Table]:
  """Measures all rows of one network of `made.NETWORKS`."""
  rows = [r for r in made.NETWORKS[network].rows if how.wants(r)]
  if not rows:
    return []
  names = ["matmul", *(f"{network}/{row}" for row in rows)]
  contestants, facts = {}, {}
  with contextlib.ExitStack() as stack:
    workers = {
      side: stack.enter_context(Worker(module))
      for side, module in _MODULES.items()
    }
    kept = stack.enter_context(Worker(_MODULES["torch"]))
    for name in names:
      for side, worker in workers.items():
        facts[side, name] = worker.prepare(name)
        contestants[f"{side} {name}"] = partial(worker.run, name)
      if name != "matmul":
        same = f"{name}@{facts['torch', name]['variant']}"
        kept.prepare(same)
        contestants[f"{_KEPT} {name}"] = partial(kept.run, same)
    times = alternate(contestants, how)
    idle = {side: worker.idle_cpu_share() for side, worker in workers.items()}

  peaks = {side: matmul_flops(times, side) for side in _MODULES}
  peak = max(peaks.values())
  table = [
    {**_row(network, row, times, peak), **facts["torch", f"{network}/{row}"]}
    for row in rows
  ]
  matmul = [
    {
      "side": side,
      "Gflop/s": peaks[side] / 1e9,
      "CPU used while idle": idle[side],
    }
    for side in _MODULES
  ]
  title = f"{network}: a step, images per second"
  tables = [
    Table(title, table),
    Table(f"{network}: matmul of {made.MATMUL}, best round", matmul),
  ]
  base = "deepall_bn" if network == "digits" else "deepall"
  if {base, "encode"} <= set(rows):
    tables.append(_cost_of_comen(network, base, times))
  return tables


def matmul_flops(times: Times, side: str) -> float:
  """Operations per second of the matmul, in its best round."""
  return 2 * made.MATMUL**3 / times.best(f"{side} matmul")


def _row(network: str, row: str, times: Times, peak: float) -> dict:
  sizes = made.NETWORKS[network]
  batch = sizes.eval_batch if row.startswith("eval") else sizes.batch
  ours, torch, kept = (f"{side} {network}/{row}" for side in (*_MODULES, _KEPT))
  count = flops.of_row(network, row)
  return {
    "row": row,
    "batch": batch,
    "ours": batch / times.median(ours),
    "torch": batch / times.median(torch),
    _KEPT: batch / times.median(kept),
    "ours / torch": times.ratio(torch, ours),  # Speeds: inverse of times.
    f"ours / {_KEPT}": times.ratio(kept, ours),
    "ours: share of peak": count / times.median(ours) / peak,
    "torch: share of peak": count / times.median(torch) / peak,
    "ours: seconds of rounds": times.seconds[ours],
    "torch: seconds of rounds": times.seconds[torch],
    f"{_KEPT}: seconds of rounds": times.seconds[kept],
  }


def _cost_of_comen(network: str, base: str, times: Times) -> Table:
  rows = [
    {
      "side": side,
      "ratio": times.ratio(
        f"{side} {network}/encode", f"{side} {network}/{base}"
      ),
    }
    for side in _MODULES
  ]
  return Table(f"{network}: time of encode / time of {base}", rows)
