"""The published data sets by name, one file each, and users' own folders.

Importing this package is cheap: it needs neither jax nor TFDS.
"""

from comen_jax.data.benchmarks import digits_dg, office_home, pacs, vlcs

BENCHMARKS = {
  module.BENCHMARK.name: module.BENCHMARK
  for module in (digits_dg, pacs, vlcs, office_home)
}
