"""Functions that change gradients but no value: reverse, clip, only.

A run has one optimiser. SGD with momentum is linear in the gradient, so several
optimisers of one rate equal one that gets the sum of their gradients. With
these functions one scalar loss says which part of it trains which parameters.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax


@jax.custom_vjp
def reverse(x: Any, weight: float | jax.Array) -> Any:
  """Returns x; the gradient that comes back is multiplied by -weight.

  This is the gradient reversal layer of DANN (Ganin et al. 2016): what follows
  learns, and what comes before learns to hinder it.

  Args:
    x: an array or a pytree of arrays.
    weight: strength of the reversal, which may change from step to step.
  """
  del weight
  return x


def _reverse_forward(x, weight):
  return x, weight


def _reverse_backward(weight, gradient):
  scale = lambda g: -jnp.asarray(weight, g.dtype) * g
  return jax.tree.map(scale, gradient), jnp.zeros_like(weight)


reverse.defvjp(_reverse_forward, _reverse_backward)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip(tree: Any, norm: float) -> Any:
  """Returns the tree; the gradient that comes back has at most this norm.

  The norm is that of all leaves together, as in torch's `clip_grad_norm_`. To
  clip only a part, clip first: `only(clip(params, norm), mask)`. The other way
  round, the norm would count leaves whose gradient `only` removes after it.

  Args:
    tree: a pytree of arrays, such as parameters.
    norm: the largest norm.
  """
  del norm
  return tree


def _clip_forward(tree, norm):
  return tree, None


def _clip_backward(norm, _, gradient):
  total = optax.tree.norm(gradient)
  scale = norm / jnp.maximum(total, norm)
  return (jax.tree.map(lambda g: scale.astype(g.dtype) * g, gradient),)


clip.defvjp(_clip_forward, _clip_backward)


def only(params: Any, mask: Any) -> Any:
  """Returns the parameters; only those whose mask is True get a gradient.

  Args:
    params: a pytree of arrays.
    mask: a pytree of bools of the same structure.
  """
  keep = lambda p, wanted: p if wanted else jax.lax.stop_gradient(p)
  return jax.tree.map(keep, params, mask)
