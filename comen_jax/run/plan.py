"""A run as a list of units of work, which checkpoints and records count."""

from typing import NamedTuple

from comen_jax.methods.base import Stage


class Unit(NamedTuple):
  """One `prepare` or one epoch.

  Attributes:
    number: number of units before this one.
    stage: the stage it belongs to.
    stage_number: index of the stage.
    epoch: epoch within the stage, from 0; None for a `prepare`.
    run_epoch: number of epochs of the whole run before this unit.
  """

  number: int
  stage: Stage
  stage_number: int
  epoch: int | None
  run_epoch: int

  @property
  def kind(self) -> str:
    return "prepare" if self.epoch is None else "epoch"


def units(stages: tuple[Stage, ...]) -> list[Unit]:
  """All units of work, in order."""
  found: list[Unit] = []
  run_epoch = 0
  for stage_number, stage in enumerate(stages):
    epochs = [None] if stage.prepare else []
    for epoch in [*epochs, *range(stage.epochs)]:
      found.append(Unit(len(found), stage, stage_number, epoch, run_epoch))
      run_epoch += epoch is not None
  return found
