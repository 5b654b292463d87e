"""Whose style decides the latent domain of an image: that of its picture.

A training view may have other colours than the picture that it comes from, or
be mixed with another one. Its style is then not the picture's. So p comes from
the picture, and the network learns from the view.
"""

from collections.abc import Callable
from typing import Any

import jax

from comen_jax import steps
from comen_jax.data.batches import Batch
from comen_jax.methods.base import Forward
from comen_jax.nn.backbone import Backbone, Outputs
from comen_jax.train_state import TrainState

# Batch -> the pictures that its images come from, normalised [B, H, W, 3].
Picture = Callable[[Batch], jax.Array]


def domains_of(picture: Picture, inner: Forward) -> Forward:
  """A forward pass with the style, F_d's logits and p of the pictures.

  Args:
    picture: gives the pictures.
    inner: the forward pass of the images.
  """

  def forward(
    model: Backbone,
    state: TrainState,
    batch: Batch,
    key: jax.Array,
    domain_probs: jax.Array | None = None,
  ) -> tuple[Outputs, Any]:
    if model.norm != "sdnorm":
      return inner(model, state, batch, key)
    # Only its style and F_d are used, so no layer after them is computed.
    pictures = batch.replace(image=picture(batch))
    real, _ = steps.forward(model, state, pictures, key, domain_probs)
    if domain_probs is None:
      domain_probs = jax.nn.softmax(real.domain_logits)
      if model.detach_probs:
        domain_probs = jax.lax.stop_gradient(domain_probs)
    outputs, stats = inner(model, state, batch, key, domain_probs)
    real_style = {"style": real.style, "domain_logits": real.domain_logits}
    return outputs.replace(**real_style), stats

  return forward
