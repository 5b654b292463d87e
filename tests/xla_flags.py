"""Flags with which XLA compiles fast and optimises nothing, for tests.

`python tests/xla_flags.py` prints them for scripts.
"""

import importlib.metadata

_FLAGS = [
  "--xla_backend_optimization_level=0",
  "--xla_cpu_parallel_codegen_split_count=1",
]
# XLA ends a process that gives it a flag which it no longer has.
_version = importlib.metadata.version("jaxlib").split(".")
if (int(_version[0]), int(_version[1])) < (0, 11):
  _FLAGS.append("--xla_cpu_use_fusion_emitters=false")
XLA_FLAGS = " ".join(_FLAGS)

if __name__ == "__main__":
  print(XLA_FLAGS)
