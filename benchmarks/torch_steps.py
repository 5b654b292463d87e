"""The PyTorch peer's steps: the same networks, batches and losses as ours.

Each row is tried in several ways (`VARIANTS`). The fastest one on this machine
competes, and the record says which one that is. A name such as
`digits/encode@eager, contiguous` asks for one variant, in a process that keeps
its memory as ours do (`comen_jax.process.allocator`).
"""

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import made
from benchmarks.alternate import say
from benchmarks.torch_comen import (
  ClassificationLoss,
  DiscoverLoss,
  EncodeLoss,
  ProtoGR,
  Prototypes,
)
from benchmarks.torch_nets import NETS, Backbone
from benchmarks.worker import Contestant
from comen_jax.process.allocator import keep_memory

_NORMS = {
  "deepall": "none", "deepall_bn": "batch", "eval_bn": "batch",
  "discover": "sdnorm", "encode": "sdnorm", "eval_comen": "sdnorm",
}  # fmt: skip
_STATISTICS = {  # Mean and std of pixels in [0, 1].
  "digits": ((0.5,) * 3, (0.5,) * 3),
  "resnet18": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
_BATCHES = 4

# All rows compile the same `forward`. Beyond the default of eight versions of
# it, torch would run the rest eagerly.
torch._dynamo.config.recompile_limit = 64


class Variant(NamedTuple):
  """A way to run the same step."""

  compiled: bool
  channels_last: bool

  def __str__(self) -> str:
    mode = "compiled" if self.compiled else "eager"
    return f"{mode}, {'channels_last' if self.channels_last else 'contiguous'}"


VARIANTS = tuple(
  Variant(compiled, channels_last)
  for compiled in (False, True)
  for channels_last in (True, False)
)


class Whole(nn.Module):
  """Normalises stored images, then computes the loss of a batch."""

  def __init__(self, network: str, loss: nn.Module, channels_last: bool):
    super().__init__()
    self.loss = loss
    mean, std = (255 * torch.tensor(v) for v in _STATISTICS[network])
    self.register_buffer("mean", mean.view(1, 3, 1, 1))
    self.register_buffer("scale", 1 / std.view(1, 3, 1, 1))
    self.format = (
      torch.channels_last if channels_last else torch.contiguous_format
    )

  def forward(self, images: Tensor, labels: Tensor, rows: Tensor):
    """images: uint8 [B, H, W, 3], labels: [B], rows: [B]."""
    x = images.permute(0, 3, 1, 2)  # Already channels_last: no copy.
    x = x.to(torch.float32, memory_format=self.format)
    return self.loss(x.sub_(self.mean).mul_(self.scale), labels, rows)


class Scores(nn.Module):
  """Sums the loss and the correct answers of a batch, for the evaluation."""

  def __init__(self, net: Backbone):
    super().__init__()
    self.net = net

  def forward(self, images, labels: Tensor, rows: Tensor):
    logits = self.net(images)[1]
    mask = rows >= 0
    losses = F.cross_entropy(logits, labels, reduction="none")
    correct = logits.argmax(1) == labels
    return (losses * mask).sum(), (correct & mask).sum(), mask.sum()


def prepare(name: str) -> Contestant:
  """Makes `matmul`, or a row such as `digits/encode` in its fastest variant."""
  torch.set_num_threads(made.cores())
  torch.set_flush_denormal(True)  # As XLA does.
  torch.manual_seed(0)
  if name == "matmul":
    return _matmul()
  name, _, asked = name.partition("@")
  if asked:
    keep_memory()
  network, row = name.split("/")
  best, tried = None, {}
  for variant in (v for v in VARIANTS if asked in ("", str(v))):
    try:
      run = _runner(network, row, variant)
      seconds = _least_seconds(run)
    except Exception as e:
      if not variant.compiled:
        raise
      tried[str(variant)] = f"failed: {type(e).__name__}"
      continue
    say(f"torch: {name}, {variant}: {seconds:.3g} s")
    if best is None or seconds < best[0]:
      best = seconds, variant, run
    tried[str(variant)] = seconds
  _, variant, run = best
  return Contestant(run, {"variant": str(variant), "tried": tried})


def make_loss(network: str, row: str) -> nn.Module:
  """Makes the network of a row, and the loss or scores on top of it."""
  sizes = made.NETWORKS[network]
  norm = _NORMS[row]
  if norm == "none" and network == "resnet18":
    norm = "batch"  # Its own.
  net = NETS[network](sizes.size, sizes.num_classes, norm, made.NUM_DOMAINS)
  if row.startswith("eval"):
    return Scores(net).eval()
  if row == "discover":
    return DiscoverLoss(net)
  if row != "encode":
    return ClassificationLoss(net)
  net.domain_predictor.requires_grad_(False)
  width = (net.head if network == "digits" else net.fc).in_features
  shape = (made.NUM_DOMAINS, sizes.num_classes, width)
  memory = Prototypes(
    torch.rand(shape),
    torch.ones(shape[:2], dtype=torch.bool),
    torch.arange(_BATCHES * sizes.batch) // 3 % made.NUM_DOMAINS,
  )
  return EncodeLoss(net, memory, ProtoGR(width, sizes.num_classes))


def _runner(network: str, row: str, variant: Variant) -> Callable[[int], None]:
  sizes = made.NETWORKS[network]
  whole = Whole(network, make_loss(network, row), variant.channels_last)
  if variant.channels_last:
    whole = whole.to(memory_format=torch.channels_last)
  call = torch.compile(whole) if variant.compiled else whole
  if row.startswith("eval"):
    batch = _batches(sizes, sizes.eval_batch, 1)[0]

    def evaluate(steps: int) -> None:
      with torch.inference_mode():
        for _ in range(steps):
          call(*batch)

    return evaluate

  optimizer = torch.optim.SGD(
    [p for p in whole.parameters() if p.requires_grad],
    lr=made.LEARNING_RATE,
    momentum=0.9,
    weight_decay=5e-4,
    fused=True,
  )
  turn = itertools.cycle(_batches(sizes, sizes.batch, _BATCHES))

  def train(steps: int) -> None:
    for _ in range(steps):
      optimizer.zero_grad(set_to_none=True)
      call(*next(turn)).backward()
      optimizer.step()

  return train


def _batches(sizes: made.Network, batch: int, count: int) -> list[tuple]:
  """Makes batches of (images uint8 [B, H, W, 3], labels [B], rows [B])."""
  images = torch.from_numpy(made.images(batch * count, sizes.size))
  rows = torch.arange(batch * count)
  labels = rows % sizes.num_classes
  return list(zip(*(x.split(batch) for x in (images, labels, rows))))


def _least_seconds(run: Callable[[int], None]) -> float:
  """Least seconds of a step, over at least five steps and half a second."""
  run(2)
  found: list[float] = []
  while len(found) < 5 or sum(found) < 0.5:
    start = time.perf_counter()
    run(1)
    found.append(time.perf_counter() - start)
  return min(found)


def _matmul() -> Contestant:
  shape = (made.MATMUL, made.MATMUL)
  a, b = (
    torch.from_numpy(
      np.random.default_rng(i).normal(size=shape).astype(np.float32)
    )
    for i in range(2)
  )
  out = torch.empty(shape)

  def run(steps: int) -> None:
    for _ in range(steps):
      torch.mm(a, b, out=out)

  return Contestant(run, {})
