"""The flag --debug_nans: jax stops at the operation that makes a NaN."""

import contextlib

import jax


def debugged(wanted: bool) -> contextlib.AbstractContextManager:
  """Has jax check every result in the body, if `wanted`; that is slow.

  The body must include the making of the jitted steps: a step that may be
  repeated without jit keeps its arguments instead of donating them.
  """
  if not wanted:
    return contextlib.nullcontext()
  jax.config.update("jax_debug_nans", True)  # For the other threads.
  # For this one. jax 0.10 itself sometimes switches the check off for a moment,
  # and after that only a thread's own setting still works.
  return jax.debug_nans(True)
