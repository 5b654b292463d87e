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
    for epoch in _epochs(stage):
      found.append(Unit(len(found), stage, stage_number, epoch, run_epoch))
      run_epoch += epoch is not None
  return found


def _epochs(stage: Stage) -> list[int | None]:
  """Numbers of the epochs of a stage, with None for each `prepare`."""
  if stage.prepare and stage.prepare_each_epoch:
    return [part for epoch in range(stage.epochs) for part in (None, epoch)]
  return [*([None] if stage.prepare else []), *range(stage.epochs)]
