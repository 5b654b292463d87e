"""The PyTorch peer's networks: digits CNN and ResNet-18, with three norms.

SDNorm is what a PyTorch user would write from the paper's equations: a loop
over the domains, each a weighted batch normalisation.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SDNorm(nn.Module):
  """Normalises with the statistics of each domain, weighted by p (Eq. 4, 5)."""

  def __init__(self, channels: int, num_domains: int, min_mass: float = 2.0):
    super().__init__()
    shape = (num_domains, channels)
    self.weight = nn.Parameter(torch.ones(shape))
    self.bias = nn.Parameter(torch.zeros(shape))
    self.register_buffer("running_mean", torch.zeros(shape))
    self.register_buffer("running_var", torch.ones(shape))
    self.min_mass = min_mass * (1 - 1e-5)

  def forward(self, x: Tensor, probs: Tensor) -> Tensor:
    """x: [B, C, H, W], probs: [B, M] -> [B, C, H, W]."""
    y = 0.0
    for m in range(probs.shape[1]):
      p = probs[:, m].view(-1, 1, 1, 1)
      mean, var = self.running_mean[m], self.running_var[m]
      if self.training:
        mean, var = self._statistics(x, p, m)
      gain = self.weight[m] * torch.rsqrt(var + 1e-5)
      normal = (x - _wide(mean)) * _wide(gain) + _wide(self.bias[m])
      y = y + p * normal
    return y

  def _statistics(self, x: Tensor, p: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Domain m's mean and variance [C], or its running ones if it is small."""
    mass = p.sum()
    w = p / (mass.clamp(min=1e-6) * x.shape[2] * x.shape[3])
    mean = (w * x).sum((0, 2, 3))
    var = (w * (x - _wide(mean)).square()).sum((0, 2, 3))
    enough = mass >= self.min_mass
    old_mean, old_var = (
      self.running_mean[m].clone(),
      self.running_var[m].clone(),
    )
    mean = torch.where(enough, mean, old_mean)
    var = torch.where(enough, var, old_var)
    with torch.no_grad():
      self.running_mean[m].lerp_(mean, 0.1)
      self.running_var[m].lerp_(var, 0.1)
    return mean, var


class BatchNorm(nn.BatchNorm2d):
  """nn.BatchNorm2d that ignores the domains."""

  def forward(self, x: Tensor, probs: Tensor | None = None) -> Tensor:
    return super().forward(x)


class NoNorm(nn.Module):
  """Leaves x as it is."""

  def forward(self, x: Tensor, probs: Tensor | None = None) -> Tensor:
    return x


class DomainPredictor(nn.Module):
  """F_d: two linear layers on the standardised style [B, 2C]."""

  def __init__(self, channels: int, num_domains: int):
    super().__init__()
    self.register_buffer("mean", torch.zeros(2 * channels))
    self.register_buffer("std", torch.ones(2 * channels))
    self.hidden = nn.Linear(2 * channels, 64)
    self.out = nn.Linear(64, num_domains)

  def forward(self, style: Tensor) -> Tensor:
    return self.out(F.relu(self.hidden((style - self.mean) / self.std)))


class Backbone(nn.Module):
  """What both networks share: norms, and domains from the first conv's style.

  No stage of COMEN sends a gradient into the style. In encode F_d is fixed:
  `net.domain_predictor.requires_grad_(False)`.
  """

  def __init__(self, norm: str, num_domains: int):
    super().__init__()
    self.norm, self.num_domains = norm, num_domains
    if norm == "sdnorm":
      self.domain_predictor = DomainPredictor(64, num_domains)

  def make_norm(self, channels: int) -> nn.Module:
    if self.norm == "sdnorm":
      return SDNorm(channels, self.num_domains)
    return BatchNorm(channels) if self.norm == "batch" else NoNorm()

  def domains(self, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """First feature map -> F_d's logits and p, both [B, M]."""
    if self.norm != "sdnorm":
      return None, None
    var, mean = torch.var_mean(x.detach(), (2, 3), correction=0)
    logits = self.domain_predictor(torch.cat([mean, (var + 1e-5).sqrt()], 1))
    return logits, logits.softmax(1)


class DigitsCNN(Backbone):
  """Four times 3x3 conv of 64, norm, 2x2 max-pool, ReLU; then a linear head."""

  def __init__(self, size: int, num_classes: int, norm: str, num_domains: int):
    super().__init__(norm, num_domains)
    for i in range(1, 5):
      conv = nn.Conv2d(64 if i > 1 else 3, 64, 3, padding=1)
      setattr(self, f"conv{i}", conv)
      setattr(self, f"norm{i}", self.make_norm(64))
    self.head = nn.Linear((size // 16) ** 2 * 64, num_classes)

  def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """-> features [B, D], logits [B, K], logits of F_d [B, M]."""
    for i in range(1, 5):
      x = getattr(self, f"conv{i}")(x)
      if i == 1:
        domain_logits, probs = self.domains(x)
      x = getattr(self, f"norm{i}")(x, probs)
      # max(relu(x)) = relu(max(x)), a quarter of the work.
      x = F.relu_(F.max_pool2d(x, 2))
    # In the order of memory (channels_last), which needs no copy.
    features = x.permute(0, 2, 3, 1).flatten(1)
    return features, self.head(features), domain_logits


class Block(nn.Module):
  """Two 3x3 convolutions and a shortcut."""

  def __init__(self, net: Backbone, inputs: int, width: int, stride: int):
    super().__init__()
    self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
    self.bn1 = net.make_norm(width)
    self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
    self.bn2 = net.make_norm(width)
    self.projects = stride != 1 or inputs != width
    if self.projects:
      self.downsample_0 = nn.Conv2d(inputs, width, 1, stride, bias=False)
      self.downsample_1 = net.make_norm(width)

  def forward(self, x: Tensor, probs: Tensor | None) -> Tensor:
    y = F.relu_(self.bn1(self.conv1(x), probs))
    y = self.bn2(self.conv2(y), probs)
    if self.projects:
      x = self.downsample_1(self.downsample_0(x), probs)
    return F.relu_(y.add_(x))


class ResNet18(Backbone):
  """ResNet-18 as torchvision's; `size` is not used."""

  def __init__(self, size: int, num_classes: int, norm: str, num_domains: int):
    super().__init__(norm, num_domains)
    self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    self.bn1 = self.make_norm(64)
    inputs = 64
    for stage in range(4):
      for i in range(2):
        width, stride = 64 * 2**stage, 2 if stage and not i else 1
        block = Block(self, inputs, width, stride)
        setattr(self, f"layer{stage + 1}_{i}", block)
        inputs = width
    self.fc = nn.Linear(inputs, num_classes)

  def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """-> features [B, D], logits [B, K], logits of F_d [B, M]."""
    x = self.conv1(x)
    domain_logits, probs = self.domains(x)
    x = self.bn1(x, probs)
    x = F.relu_(F.max_pool2d(x, 3, 2, 1))
    for stage in range(1, 5):
      for i in range(2):
        x = getattr(self, f"layer{stage}_{i}")(x, probs)
    features = x.mean((2, 3))
    return features, self.fc(features), domain_logits


def _wide(vector: Tensor) -> Tensor:
  """[C] -> [1, C, 1, 1]."""
  return vector.view(1, -1, 1, 1)


NETS = {"digits": DigitsCNN, "resnet18": ResNet18}
