"""Counts the floating-point operations of a step's convolutions and matmuls.

Counted by hand: XLA's own count sees the body of a loop only once. Norms,
activations, F_d and the losses on prototypes are left out: a few per cent.
"""

from typing import NamedTuple

from benchmarks import made


class Layer(NamedTuple):
  """A convolution, or a linear layer as a convolution of one pixel.

  Attributes:
    pixels: number of output pixels.
    size: side of the kernel.
    inputs: number of input channels.
    outputs: number of output channels.
  """

  pixels: int
  size: int
  inputs: int
  outputs: int

  @property
  def flops(self) -> int:
    """Operations of the forward pass for one image."""
    return 2 * self.pixels * self.size**2 * self.inputs * self.outputs


def of_row(network: str, row: str) -> int:
  """Operations of one step of a row of the table."""
  sizes = made.NETWORKS[network]
  layers = LAYERS[network](sizes.size, sizes.num_classes)
  forward = sum(layer.flops for layer in layers)
  if row.startswith("eval"):
    return sizes.eval_batch * forward
  # Gradients of weights and inputs; nobody needs that of the images.
  return sizes.batch * (3 * forward - layers[0].flops)


def digits(size: int, num_classes: int) -> list[Layer]:
  """Layers of the digits CNN; each convolution is followed by a 2x2 pool."""
  layers = [Layer((size // 2**i) ** 2, 3, 64 if i else 3, 64) for i in range(4)]
  features = (size // 16) ** 2 * 64
  return [*layers, Layer(1, 1, features, num_classes)]


def resnet18(size: int, num_classes: int) -> list[Layer]:
  """Layers of ResNet-18."""
  side = -(-size // 2)
  layers = [Layer(side**2, 7, 3, 64)]
  side = -(-side // 2)
  inputs = 64
  for stage in range(4):
    width = 64 * 2**stage
    side = side if stage == 0 else -(-side // 2)
    for block in range(2):
      layers.append(Layer(side**2, 3, inputs, width))
      layers.append(Layer(side**2, 3, width, width))
      if stage and not block:
        layers.append(Layer(side**2, 1, inputs, width))
      inputs = width
  return [*layers, Layer(1, 1, inputs, num_classes)]


LAYERS = {"digits": digits, "resnet18": resnet18}
