"""Checks of a config's values before anything is made or overwritten.

Also the normalisation and the backbone options that a config implies.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import jax
from ml_collections import ConfigDict

from comen_jax.data.dataset import Split
from comen_jax.errors import UserError
from comen_jax.methods.base import split_epochs
from comen_jax.methods.registry import METHODS
from comen_jax.nn import weights_file
from comen_jax.nn.registry import BACKBONES
from comen_jax.nn.resnet import STYLE_AT

# The values of backbones that have no choice.
_OPTIONS = {"style_at": "stem", "sdnorm_stem": True, "remat": False}


def check(config: ConfigDict) -> None:
  """Raises UserError at the first value that cannot be right."""
  _choose("method", config.method, METHODS)
  _choose("backbone", config.backbone, BACKBONES)
  _choose("norm", norm(config), BACKBONES[config.backbone].norms)
  _check_backbone(config)
  for name in ("num_domains", "batch_size", "eval_batch_size", "epochs"):
    if config[name] < 1:
      raise UserError(f"{name}={config[name]}: give 1 or more")
  if config.seed < 0:
    raise UserError(f"seed={config.seed}: give 0 or more")
  devices = jax.device_count()
  for name in ("batch_size", "eval_batch_size"):
    if config[name] % devices:
      below = config[name] // devices * devices
      raise UserError(
        f"{name}={config[name]} does not divide over {devices} devices:"
        f" give a multiple of {devices}, such as {below or devices}"
      )
  candidate_epochs(config)


def norm(config: ConfigDict) -> str:
  """Normalisation of the backbone: as given, else the method's preset."""
  preset = config.norm or METHODS[config.method].norm
  return BACKBONES[config.backbone].norms[0] if preset == "own" else preset


def backbone_options(config: ConfigDict) -> dict[str, Any]:
  """Values of the keys that only some backbones or methods have."""
  own = {name: config[name] for name in BACKBONES[config.backbone].options}
  settings = method_settings(config)
  names = ("style_from", "test_temperature")
  return own | {name: settings[name] for name in names if name in settings}


def method_settings(config: ConfigDict) -> Mapping[str, Any]:
  """The config's block for its method; none means the method's defaults."""
  return dict(config.get(config.method, {}))


def candidate_epochs(config: ConfigDict) -> int:
  """Number of epochs, the last ones, among which one is chosen.

  It is the same for every method, so that all have equally many candidates.
  """
  return split_epochs(config.epochs, tuple(config.stage_shares))[-1]


def check_split(batch_size: int, split: Split) -> None:
  """Checks that there is a batch to train on and a validation image."""
  images = len(split.train_rows)
  if images < batch_size:
    raise UserError(
      f"batch_size={batch_size} is more than the {images} source images for"
      " training: lower batch_size"
    )
  if not len(split.val_rows):
    raise UserError(
      f"sources {', '.join(split.sources)} have no validation images, so no"
      " epoch can be chosen: add some"
    )


def _check_backbone(config: ConfigDict) -> None:
  entry = BACKBONES[config.backbone]
  for name, only in _OPTIONS.items():
    if name not in entry.options and config[name] != only:
      raise UserError(
        f"{name}={config[name]}: {config.backbone} has {only} only"
      )
  _choose("style_at", config.style_at, STYLE_AT)
  if config.pretrained and not entry.pretrained:
    raise UserError(
      f"pretrained={config.pretrained}: {config.backbone} is trained from"
      " scratch, leave it empty"
    )
  if config.pretrained:
    weights_file.resolve(config.pretrained)  # Before data take minutes.


def _choose(name: str, value: str, choices: Iterable[str]) -> None:
  if value not in choices:
    raise UserError(f"{name}={value!r}: choose one of {', '.join(choices)}")
