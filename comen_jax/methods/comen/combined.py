"""COMEN together with a method that changes pictures or feature maps.

The losses of COMEN's stages see what the other method changes. The style, F_d
and p are those of the unchanged picture, so the latent domains stay what they
are.

- `comen_mixstyle` mixes feature maps (`methods/mixstyle.py`). The style is
  taken before the first point where it mixes.
- `comen_randconv` convolves the pictures (`data/random_conv.py`). RandConv's
  agreement of three draws is left out, since it needs three times the work.
- `comen_fact` mixes the amplitude spectra (`data/spectrum.py`) of half of the
  pictures, since FACT's loss is the mean over pictures and mixtures. Its
  teacher is left out.
"""

from collections.abc import Callable
from typing import Any

import jax

from comen_jax import steps
from comen_jax.data.batches import Batch
from comen_jax.data.random_conv import random_convolution
from comen_jax.data.spectrum import random_amplitude_mix
from comen_jax.errors import UserError
from comen_jax.methods import comen, mixstyle
from comen_jax.methods.base import Forward, Method, Setup, Task, check_layers
from comen_jax.methods.comen.pictures import domains_of
from comen_jax.methods.options import label_free
from comen_jax.nn.backbone import Backbone, Outputs
from comen_jax.train_state import TrainState

# (key, normalised images) -> changed images.
Change = Callable[[jax.Array, jax.Array], jax.Array]
# The options of COMEN and those of the other method.
Pair = tuple[comen.Options, Any]
_CHANGED = 0.5  # Share of the pictures that FACT mixes.


def check(options: Pair, setup: Setup) -> None:
  """Checks the options of both methods."""
  own, other = options
  comen.check(own, setup)
  if hasattr(other, "layers"):
    check_layers(other, setup)


def check_images(
  options: Pair, norm: str, num_domains: int, images: int
) -> None:
  """Raises UserError if there are too few images to discover domains in."""
  comen.check_images(options[0], norm, num_domains, images)


def create_mixstyle(task: Task, options: Pair) -> Method:
  """Makes COMEN whose feature maps get mixed styles."""
  own, other = options
  if task.norm == "sdnorm" and len(task.model.style_layers) > 1:
    raise UserError(
      f"style_at={task.model.style_at}: comen_mixstyle mixes feature maps"
      " before this layer, so its style would change; give style_at=stem"
    )
  return comen.create(task, own, mixing_styles(other))


def create_randconv(task: Task, options: Pair) -> Method:
  """Makes COMEN whose pictures are convolved at random."""
  own, other = options
  change = lambda key, images: random_convolution(
    key, images, mix=other.mix, keep=other.keep
  )
  return comen.create(task, own, changing_pictures(change))


def create_fact(task: Task, options: Pair) -> Method:
  """Makes COMEN whose pictures have mixed amplitude spectra."""
  own, other = options
  pixels, normalise = task.views.pixels, task.views.normalise
  change = lambda key, images: normalise(
    random_amplitude_mix(key, pixels(images), other.strength, _CHANGED)
  )
  return comen.create(task, own, changing_pictures(change))


def mixing_styles(options: label_free.MixStyle) -> Forward:
  """A forward pass that mixes the styles of feature maps."""

  def forward(
    model: Backbone,
    state: TrainState,
    batch: Batch,
    key: jax.Array,
    domain_probs: jax.Array | None = None,
  ) -> tuple[Outputs, Any]:
    drop_key, mix_key = jax.random.split(key)
    size = len(batch.label)
    tap = mixstyle.make_tap(
      mix_key,
      size,
      model.points,
      options,
      lambda key: jax.random.permutation(key, size),
    )
    return steps.forward(model, state, batch, drop_key, domain_probs, tap=tap)

  return forward


def changing_pictures(change: Change) -> Forward:
  """A forward pass on changed pictures, with the domains of the real ones."""

  def changed(
    model: Backbone,
    state: TrainState,
    batch: Batch,
    key: jax.Array,
    domain_probs: jax.Array | None = None,
  ) -> tuple[Outputs, Any]:
    drop_key, change_key = jax.random.split(key)
    images = change(change_key, batch.image)
    return steps.forward(
      model, state, batch.replace(image=images), drop_key, domain_probs
    )

  return domains_of(lambda batch: batch.image, changed)
