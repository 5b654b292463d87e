"""Checks of a config's values before anything is made or overwritten."""

import jax

from comen_jax.data.dataset import Split
from comen_jax.errors import UserError
from comen_jax.methods import METHODS
from comen_jax.nn import weights_file
from comen_jax.nn.registry import BACKBONES
from comen_jax.nn.resnet import STYLE_AT
from comen_jax.stage import split_epochs

# Of backbones that have no choice.
_OPTIONS = {"style_at": "stem", "sdnorm_stem": True, "remat": False}


def check(config) -> None:
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
  stage_epochs(config)


def norm(config) -> str:
  """The backbone's normalisation: as given, else the method's preset."""
  preset = config.norm or METHODS[config.method].norm
  return BACKBONES[config.backbone].norms[0] if preset == "own" else preset


def options(config) -> dict:
  """What the config says of things that only some backbones have."""
  return {name: config[name] for name in BACKBONES[config.backbone].options}


def stage_epochs(config) -> tuple[int, int, int]:
  """Epochs of warm-up, discover, encode."""
  shares = tuple(config.stage_shares)
  if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
    raise UserError(
      f"stage_shares={shares}: give three shares (warm-up, discover, encode)"
      " that sum to 1"
    )
  if shares[-1] == 0:
    raise UserError(
      f"stage_shares={shares}: the last is 0, but the epoch is chosen among"
      " those of the last stage; give it a share"
    )
  try:
    return split_epochs(config.epochs, shares)
  except ValueError as e:
    raise UserError(f"epochs={config.epochs}: {e}; raise epochs") from e


def check_split(batch_size: int, split: Split) -> None:
  """There must be a batch to train on, and images to choose the epoch by."""
  images = len(split.train_rows)
  if images < batch_size:
    raise UserError(
      f"batch_size={batch_size} is more than the {images} source images for"
      " training: lower batch_size"
    )
  if not len(split.val_rows):
    raise UserError(
      f"sources {', '.join(split.sources)} have no validation images: the epoch"
      " could not be chosen; put some there"
    )


def _check_backbone(config) -> None:
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
    weights_file.resolve(config.pretrained)  # Before the data take minutes.


def _choose(name: str, value: str, choices) -> None:
  if value not in choices:
    raise UserError(f"{name}={value!r}: choose one of {', '.join(choices)}")
