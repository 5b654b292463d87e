"""ResNet and AlexNet of torchvision, written with torch.nn to compare with."""

import pytest

torch = pytest.importorskip(
  "torch", reason="torch is not installed: nothing to compare with"
)
nn = torch.nn

_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}


def _conv(inputs, outputs, size, stride=1):
  return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class _Block(nn.Module):
  def __init__(self, inputs, width, stride, bottleneck):
    super().__init__()
    outputs = 4 * width if bottleneck else width
    shapes = (
      [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
      if bottleneck
      else [(inputs, width, 3, stride), (width, width, 3, 1)]
    )
    self.count = len(shapes)
    for i, shape in enumerate(shapes, 1):
      setattr(self, f"conv{i}", _conv(*shape))
      setattr(self, f"bn{i}", nn.BatchNorm2d(shape[1]))
    self.downsample = None
    if stride != 1 or inputs != outputs:
      self.downsample = nn.Sequential(
        _conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
      )

  def forward(self, x):
    y = x
    for i in range(1, self.count + 1):
      y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
      y = torch.relu(y) if i < self.count else y
    return torch.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
  def __init__(self, depth=18, num_classes=1000):
    super().__init__()
    self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    self.bn1 = nn.BatchNorm2d(64)
    self.pool = nn.MaxPool2d(3, 2, 1)
    inputs = 64
    for stage, count in enumerate(_BLOCKS[depth]):
      width, blocks = 64 * 2**stage, []
      for i in range(count):
        stride = 2 if stage and not i else 1
        blocks.append(_Block(inputs, width, stride, depth >= 50))
        inputs = 4 * width if depth >= 50 else width
      setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
    self.fc = nn.Linear(inputs, num_classes)

  def forward(self, x):
    """Returns features and logits."""
    x = self.pool(torch.relu(self.bn1(self.conv1(x))))
    for stage in range(1, 5):
      x = getattr(self, f"layer{stage}")(x)
    features = x.mean((2, 3))
    return features, self.fc(features)


class AlexNet(nn.Module):
  def __init__(self, num_classes=1000):
    super().__init__()
    self.features = nn.Sequential(
      nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
      nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
      nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(),
      nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
      nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(3, 2),
    )  # fmt: skip
    self.pool = nn.AdaptiveAvgPool2d(6)
    self.classifier = nn.Sequential(
      nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(),
      nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
      nn.Linear(4096, num_classes),
    )  # fmt: skip

  def forward(self, x):
    """Returns features (fc7) and logits."""
    x = self.pool(self.features(x)).flatten(1)
    features = self.classifier[:6](x)
    return features, self.classifier[6](features)


def run(model, images):
  """Evaluates numpy images [B, H, W, 3]; returns numpy features and logits."""
  with torch.no_grad():
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    return [y.numpy() for y in model.eval()(x)]


def randomise(model, seed=0):
  """Draws weights and norm statistics that give activations of order 1."""
  generator = torch.Generator().manual_seed(seed)
  uniform = lambda t, low, high: t.uniform_(low, high, generator=generator)
  with torch.no_grad():
    for module in model.modules():
      if isinstance(module, nn.BatchNorm2d):
        uniform(module.weight, 0.5, 1.0)
        uniform(module.bias, -0.2, 0.2)
        uniform(module.running_mean, -0.2, 0.2)
        uniform(module.running_var, 0.5, 2.0)
      elif isinstance(module, nn.Conv2d | nn.Linear):
        fan_in = module.weight[0].numel()
        module.weight.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
  return model


def save(model, path):
  """Saves a model as .safetensors, float32; returns the path."""
  import safetensors.numpy

  arrays = {k: v.numpy().copy() for k, v in model.state_dict().items()}
  safetensors.numpy.save_file(arrays, path)
  return str(path)


def load(model, path):
  """Loads a .safetensors; returns the model and the names it lacks."""
  import safetensors.numpy

  arrays = safetensors.numpy.load_file(path)
  tensors = {k: torch.from_numpy(v).float() for k, v in arrays.items()}
  missing, unexpected = model.load_state_dict(tensors, strict=False)
  assert not unexpected
  return model, [m for m in missing if "num_batches" not in m]
