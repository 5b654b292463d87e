"""What a process sets before it works: memory and compiled code are kept."""

from comen_jax.process import allocator, compilation


def start() -> None:
  """Call it once, before the first array is made."""
  allocator.keep_memory()
  compilation.keep()
