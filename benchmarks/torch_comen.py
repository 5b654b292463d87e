"""The PyTorch peer's losses: those of DeepAll, discover and encode."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.torch_nets import Backbone


class Prototypes(nn.Module):
  """The memory of prototypes, moved towards those of each batch (Eq. 7)."""

  def __init__(self, values: Tensor, seen: Tensor, domains: Tensor):
    """values: [M, K, D], seen: [M, K], domains of all rows: int [N]."""
    super().__init__()
    self.num_domains, self.num_classes, width = values.shape
    self.register_buffer("values", values.reshape(-1, width).clone())
    self.register_buffer("seen", seen.reshape(-1).clone())
    self.register_buffer("domains", domains.clone())

  def forward(
    self, features: Tensor, labels: Tensor, rows: Tensor
  ) -> tuple[Tensor, Tensor]:
    """Updates the memory -> nodes [M*K, D] with their gradient, seen [M*K]."""
    cells = self.domains[rows] * self.num_classes + labels
    old = self.values.clone()
    total = torch.zeros_like(old).index_add(0, cells, features)
    ones = torch.ones_like(cells, dtype=old.dtype)
    count = old.new_zeros(len(old)).index_add(0, cells, ones)[:, None]
    present, seen = count > 0, self.seen[:, None].clone()
    local = total / count.clamp(min=1)
    moved = torch.where(seen, torch.lerp(local, old, 0.7), local)
    nodes = torch.where(present, moved, old)
    now = (seen | present)[:, 0]
    with torch.no_grad():
      self.values.copy_(nodes)
      self.seen.copy_(now)
    return nodes, now


class GraphAttention(nn.Module):
  """One head of graph attention (Eq. 9, 10)."""

  def __init__(self, width: int):
    super().__init__()
    self.kernel = nn.Parameter(torch.empty(width, width))
    self.attention = nn.Parameter(torch.empty(2 * width, 1))
    nn.init.xavier_uniform_(self.kernel)
    nn.init.xavier_uniform_(self.attention)

  def forward(self, nodes: Tensor, affinity: Tensor) -> Tensor:
    hidden = nodes @ self.kernel
    receiver, sender = (hidden @ a for a in self.attention.chunk(2))
    logits = F.leaky_relu(receiver + sender.T, 0.2)
    edge = affinity > 0
    logits = logits + torch.where(edge, affinity, 1.0).log()
    alpha = logits.masked_fill(~edge, -1e30).softmax(-1)
    return F.relu(alpha.masked_fill(~edge, 0.0) @ hidden)


class ProtoGR(nn.Module):
  """Two layers of graph attention, a residual (Eq. 11), a classifier."""

  def __init__(self, width: int, num_classes: int):
    super().__init__()
    self.attention_1 = GraphAttention(width)
    self.attention_2 = GraphAttention(width)
    self.head = nn.Linear(width, num_classes)

  def forward(self, nodes: Tensor, seen: Tensor) -> Tensor:
    """nodes: [N, D], seen: [N] -> L_ProtoGR (Eq. 12)."""
    nodes = nodes.masked_fill(~seen[:, None], 0.0)
    unit = F.normalize(nodes, dim=1, eps=1e-6)
    cosine = unit @ unit.T  # Eq. 8.
    edges = cosine.masked_fill(cosine <= 0.5, 0.0)
    eye = torch.eye(len(nodes), dtype=torch.bool)
    edges = edges.masked_fill(eye, 1.0)
    edges = edges.masked_fill(~(seen[:, None] & seen), 0.0)
    x = self.attention_2(self.attention_1(nodes, edges), edges)
    logits = self.head(x + nodes)
    labels = torch.arange(len(nodes)) % logits.shape[1]
    losses = F.cross_entropy(logits, labels, reduction="none")
    return _masked_mean(losses, seen)


def protoccl(nodes: Tensor, seen: Tensor, num_classes: int) -> Tensor:
  """L_ProtoCCL (Eq. 14) with unit vectors. nodes: [N, D], seen: [N]."""
  unit = F.normalize(nodes.masked_fill(~seen[:, None], 0.0), dim=1, eps=1e-6)
  similarity = unit @ unit.T / 0.5
  label = torch.arange(len(nodes)) % num_classes
  same = label[:, None] == label
  both = seen[:, None] & seen
  positive = both & same & ~torch.eye(len(nodes), dtype=torch.bool)
  negatives = similarity.masked_fill(~(both & ~same), -1e30)
  negatives = negatives.logsumexp(1, keepdim=True)
  pairs = F.softplus(negatives - similarity).masked_fill(~positive, 0.0)
  count = positive.sum(1)
  return _masked_mean(pairs.sum(1) / count.clamp(min=1), count > 0)


class ClassificationLoss(nn.Module):
  """L_cls (Eq. 15)."""

  def __init__(self, net: Backbone):
    super().__init__()
    self.net = net

  def forward(self, images, labels: Tensor, rows: Tensor) -> Tensor:
    return F.cross_entropy(self.net(images)[1], labels)


class DiscoverLoss(nn.Module):
  """L_cls + L_d (Eq. 3) + log M - H(mean p)."""

  def __init__(self, net: Backbone):
    super().__init__()
    self.net = net

  def forward(self, images, labels: Tensor, rows: Tensor) -> Tensor:
    _, logits, domain_logits = self.net(images)
    log_p = domain_logits.log_softmax(1)
    p = log_p.exp()
    entropy = -(p * log_p).sum(1).mean()
    mean = p.mean(0)
    imbalance = math.log(p.shape[1]) + (mean * mean.log()).sum()
    return F.cross_entropy(logits, labels) + entropy + imbalance


class EncodeLoss(nn.Module):
  """L_cls + .1 L_ProtoGR + .1 L_ProtoCCL (Eq. 16)."""

  def __init__(self, net: Backbone, memory: Prototypes, graph: ProtoGR):
    super().__init__()
    self.net, self.memory, self.graph = net, memory, graph

  def forward(self, images, labels: Tensor, rows: Tensor) -> Tensor:
    features, logits, _ = self.net(images)
    nodes, seen = self.memory(features, labels, rows)
    loss_graph = self.graph(nodes, seen)
    loss_ccl = protoccl(nodes, seen, self.memory.num_classes)
    loss = F.cross_entropy(logits, labels)
    return loss + 0.1 * loss_graph + 0.1 * loss_ccl


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
  """Mean of the values whose mask is true; 0 if there is none."""
  return values.masked_fill(~mask, 0.0).sum() / mask.sum().clamp(min=1)
