"""The PyTorch side of `parts`: eager, channels_last."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import made, parts
from benchmarks.worker import Contestant


def prepare(name: str) -> Contestant:
  """Makes a part such as `conv2/both`."""
  torch.set_num_threads(made.cores())
  torch.set_flush_denormal(True)
  part, direction = name.split("/")
  x = torch.from_numpy(parts.drawn(part)).permute(0, 3, 1, 2)
  x = x.contiguous(memory_format=torch.channels_last)
  if part.startswith("max-pool"):
    module = lambda x: F.relu(F.max_pool2d(x, 2))
    inputs = []
  else:
    module = (
      nn.BatchNorm2d(parts.WIDTH)
      if part.startswith("BatchNorm")
      else nn.Conv2d(x.shape[1], parts.WIDTH, 3, padding=1)
    ).to(memory_format=torch.channels_last)
    inputs = list(module.parameters())
  if part != "conv1":
    inputs.append(x.requires_grad_())
  if direction == "forward":
    return Contestant(partial(_forward, module, x), {})
  gradient = torch.ones_like(module(x))

  def both(steps: int) -> None:
    for _ in range(steps):
      torch.autograd.grad(module(x), inputs, gradient)

  return Contestant(both, {})


@torch.no_grad()
def _forward(module, x: torch.Tensor, steps: int) -> None:
  for _ in range(steps):
    module(x)
