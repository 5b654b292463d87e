"""Checks of a config's values before anything is made or overwritten.

Also the normalisation, backbone options and batch sizes that a config implies.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from comen_jax import ranges, variants
from comen_jax.data import registry as datasets
from comen_jax.data.dataset import Split
from comen_jax.data.recipes import get_recipe
from comen_jax.data.views import NORMALISATIONS
from comen_jax.errors import UserError
from comen_jax.methods import registry as methods
from comen_jax.methods.base import Setup, last_epochs
from comen_jax.methods.options import used_blocks
from comen_jax.methods.registry import METHODS
from comen_jax.nn import weights_file
from comen_jax.nn.registry import BACKBONES
from comen_jax.nn.resnet import STYLE_AT

# The values of backbones that have no choice.
_OPTIONS = {"style_at": "stem", "sdnorm_stem": True, "remat": False}
# Images in an evaluation batch of a device: more take memory, not less time.
_MOST_EVALUATED = 2048


def check(config: ConfigDict) -> None:
  """Raises UserError at the first value that cannot be right.

  It reads no data. What depends on them is left to `check_split`.
  """
  ranges.check(config)
  _check_name(config.method)
  _choose("backbone", config.backbone, BACKBONES)
  _choose("norm", norm(config), BACKBONES[config.backbone].norms)
  _choose("dataset", config.dataset, datasets.NAMES)
  _choose("normalise", config.normalise, NORMALISATIONS)
  get_recipe(config.augment)
  _check_backbone(config)
  devices = jax.device_count()
  for name in ("batch_size", "eval_batch_size"):
    if config[name] % devices:
      below = config[name] // devices * devices
      raise UserError(
        f"{name}={config[name]} does not divide over {devices} devices:"
        f" give a multiple of {devices}, such as {below or devices}"
      )
  candidate_epochs(config)
  check_method(config)


def find_weights(config: ConfigDict) -> None:
  """Raises UserError if the pretrained weights cannot be found or fetched.

  Call it after all other checks, since a download takes time, and before data
  are read, which takes minutes.
  """
  if config.pretrained:
    weights_file.resolve(config.pretrained)


def norm(config: ConfigDict) -> str:
  """Normalisation of the backbone: as given, else the method's preset."""
  preset = config.norm or METHODS[config.method].norm
  return BACKBONES[config.backbone].norms[0] if preset == "own" else preset


def backbone_options(config: ConfigDict) -> dict[str, Any]:
  """Values of the keys that only some backbones or methods have."""
  own = {name: config[name] for name in BACKBONES[config.backbone].options}
  names = ("style_from", "test_temperature")
  for settings in method_settings(config).values():
    own |= {name: settings[name] for name in names if name in settings}
  return own


def method_settings(config: ConfigDict) -> dict[str, dict[str, Any]]:
  """The config's blocks for its method; none means the method's defaults."""
  blocks = used_blocks(config.method)
  return {block: dict(config.get(block, {})) for block in blocks}


def method_options(config: ConfigDict) -> Any:
  """The options of the config's method, as its NamedTuple."""
  return methods.options(config.method, method_settings(config))


def candidate_epochs(config: ConfigDict) -> int:
  """Number of epochs, the last ones, among which one is chosen.

  It is the same for every method, so that all have equally many candidates. A
  method of one stage can be tried with fewer epochs than COMEN has stages.
  """
  return last_epochs(config.epochs, tuple(config.stage_shares))


def check_split(config: ConfigDict, split: Split) -> None:
  """Checks the values that depend on the number of source images."""
  if not len(split.val_rows):
    raise UserError(
      f"sources {', '.join(split.sources)} have no validation images, so no"
      " epoch can be chosen: add some"
    )
  METHODS[config.method].check_images(
    method_options(config), norm(config), config.num_domains,
    len(split.train_rows),
  )  # fmt: skip


class BatchSizes(NamedTuple):
  """Numbers of images in a batch, over all devices.

  Attributes:
    train: number of images in a training batch.
    evaluation: number of images in an evaluation batch.
    lowered: {"batch_size": train} if the config's is greater, else {}.
    notice: one line for the user if a size is not the config's, else "".
  """

  train: int
  evaluation: int
  lowered: Mapping[str, int]
  notice: str


def batch_sizes(config: ConfigDict, split: Split, devices: int) -> BatchSizes:
  """Returns the config's batch sizes, lowered to what the data can fill.

  Args:
    config: the config.
    split: rows of the data set.
    devices: number of devices that share a batch.
  """
  images = len(split.train_rows)
  train = min(config.batch_size, images // devices * devices)
  if not train:
    raise UserError(
      f"there are {images} source images to train on, fewer than the {devices}"
      " devices: add images or use fewer devices"
    )
  rows = max(images + len(split.val_rows), len(split.target_rows))
  most = min(-(-rows // devices), _MOST_EVALUATED) * devices
  evaluation = min(config.eval_batch_size, most)
  lowered, notices = {}, []
  if train < config.batch_size:
    lowered["batch_size"] = train
    notices.append(
      f"batch_size={config.batch_size} is lowered to {train}, as there are"
      f" {images} source images for training"
    )
  if evaluation < config.eval_batch_size:
    notices.append(
      f"eval_batch_size={config.eval_batch_size} is lowered to {evaluation},"
      " as more is of no use"
    )
  return BatchSizes(train, evaluation, lowered, "; ".join(notices))


def check_method(config: ConfigDict) -> None:
  """Raises UserError if the method does not fit its network or options."""
  entry = METHODS[config.method]
  setup = Setup(
    method=config.method,
    backbone=config.backbone,
    points=BACKBONES[config.backbone].points,
    norm=norm(config),
    image_size=config.image_size,
    epochs=config.epochs,
    stage_shares=tuple(config.stage_shares),
  )
  supported = {"backbone": entry.backbones, "norm": entry.norms}
  for name, choices in supported.items():
    given = getattr(setup, name)
    if choices and given not in choices:
      raise UserError(
        f"{name}={given!r}: {config.method} supports {', '.join(choices)} only"
      )
  entry.check(method_options(config), setup)


def _check_backbone(config: ConfigDict) -> None:
  entry = BACKBONES[config.backbone]
  for name, only in _OPTIONS.items():
    if name not in entry.options and config[name] != only:
      raise UserError(
        f"{name}={config[name]}: {config.backbone} has {only} only"
      )
  _choose("style_at", config.style_at, STYLE_AT)
  if config.image_size < entry.least_size:
    raise UserError(
      f"image_size={config.image_size} is too small for {config.backbone}: give"
      f" {entry.least_size} or more"
    )
  if config.pretrained and not entry.pretrained:
    raise UserError(
      f"pretrained={config.pretrained}: {config.backbone} is trained from"
      " scratch, leave it empty"
    )


def _check_name(method: str) -> None:
  """Raises UserError at an unknown method; it may be a row of a sweep."""
  if method not in METHODS and method in variants.VARIANTS:
    settings = variants.VARIANTS[method].settings
    flags = " ".join(
      f"--config.{k}={v}" for k, v in settings.items() if v != ""
    )
    raise UserError(
      f"method={method!r} is a row of a sweep: main needs {flags}"
    )
  _choose("method", method, METHODS)


def _choose(name: str, value: str, choices: Iterable[str]) -> None:
  if value not in choices:
    raise UserError(f"{name}={value!r}: choose one of {', '.join(choices)}")
