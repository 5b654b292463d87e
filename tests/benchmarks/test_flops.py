"""Operations are counted as the literature does."""

import pytest

from benchmarks import flops


def test_resnet18_has_the_published_number():
  # Torchvision: 1.814e9 multiply-adds at 224, two operations each.
  layers = flops.resnet18(224, 1000)
  assert sum(x.flops for x in layers) == pytest.approx(2 * 1.814e9, rel=1e-3)


def test_digits_training_step_lacks_the_gradient_of_the_images():
  first = 2 * 32 * 32 * 9 * 3 * 64
  others = 2 * 9 * 64 * 64 * (16 * 16 + 8 * 8 + 4 * 4) + 2 * 256 * 10
  assert flops.of_row("digits", "encode") == 128 * (2 * first + 3 * others)
  assert flops.of_row("digits", "eval_bn") == 512 * (first + others)
