"""Freed memory stays in the process."""

import platform
import subprocess
import sys

import pytest

# Twenty blocks of 64 MB, one after the other, each touched and freed.
_FAULTS = """
import resource, sys
import numpy as np
from comen_jax.process.allocator import keep_memory
if sys.argv[1] == "kept":
  assert keep_memory()
np.ones(2**23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
  np.ones(2**23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_a_large_block_is_found_again():
  def faults(how: str) -> int:
    command = [sys.executable, "-c", _FAULTS, how]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)

  assert faults("kept") < 100 < faults("plain")
