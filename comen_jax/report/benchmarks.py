"""Facts about the data sets that are known without their images."""

from comen_jax.data import mini_digits
from comen_jax.data.benchmarks import BENCHMARKS


def domains(dataset: str) -> tuple[str, ...]:
  """Returns the domains of the built-in data set in order; () for others."""
  if dataset != "mini_digits":
    return ()
  return mini_digits.DOMAINS


def published_images(dataset: str, domain: str) -> int:
  """Returns how many images a domain of a benchmark has as published."""
  count = BENCHMARKS[dataset].published_domains[domain]
  return count if isinstance(count, int) else sum(count)
