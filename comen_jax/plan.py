"""A run as a list of units of work, which checkpoints and records count."""

from typing import NamedTuple

from comen_jax.stage import Stage


class Unit(NamedTuple):
  """One `prepare` (`epoch` None) or one epoch.

  Attributes:
    stage: index of its stage.
    epoch: counted within the stage.
    epochs_before: epochs of the whole run before it.
  """

  stage: int
  epoch: int | None
  epochs_before: int


def units(stages: tuple[Stage, ...]) -> list[Unit]:
  """All of them, in order."""
  found, before = [], 0
  for number, stage in enumerate(stages):
    if stage.prepare:
      found.append(Unit(number, None, before))
    for epoch in range(stage.epochs):
      found.append(Unit(number, epoch, before))
      before += 1
  return found
