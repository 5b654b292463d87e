"""Compares the peak memory of a COMEN step with SDNorm and with BatchNorm.

  python -m benchmarks.memory --out results/memory.json

The step is the encode stage of configs/pacs.py: ResNet-18, images of 224
pixels, batch size 128. Both steps have the same losses and prototypes; only
`norm` differs. The step is compiled but not run. XLA reports the bytes for the
device of this machine: arguments, outputs that share no buffer with them, and
temporaries at their peak. On CPU `--remat` saves nothing, since XLA keeps most
of the values that it should recompute. Nothing was measured on GPU or TPU.
"""

import argparse
import json
import pathlib
import platform
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import made
from comen_jax import sharding
from comen_jax.data.batches import Batch
from comen_jax.experiment import build

LIMIT = 1.10
_IMAGES = 9991  # As many as PACS has.


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--batch_size", type=int, default=128, help="number of images per batch"
  )
  parser.add_argument(
    "--image_size", type=int, default=224, help="side of an image in pixels"
  )
  parser.add_argument("--dtype", default="float32", help="dtype of the layers")
  parser.add_argument(
    "--remat", action="store_true", help="compute blocks twice to save memory"
  )
  parser.add_argument("--out", help="path of the JSON file to write")
  arguments = vars(parser.parse_args())
  out = arguments.pop("out")
  found = {norm: measure(norm, **arguments) for norm in ("batch", "sdnorm")}
  ratio = found["sdnorm"]["peak_bytes"] / found["batch"]["peak_bytes"]
  for norm, row in found.items():
    gigabytes = row["peak_bytes"] / 2**30
    print(f"{norm:>7}  {gigabytes:.2f} GiB  compiled in {row['seconds']:.0f} s")
  verdict = "holds" if ratio <= LIMIT else "does not hold"
  print(f"  ratio  {ratio:.3f} (at most {LIMIT}: {verdict})")
  if out:
    device = jax.devices()[0]
    record = {
      **arguments,
      **found,
      "ratio": ratio,
      "jax": jax.__version__,
      "device": f"{device.device_kind} ({device.platform})",
      "machine": platform.machine(),
    }
    pathlib.Path(out).write_text(json.dumps(record, indent=2) + "\n")


def measure(
  norm: str, *, batch_size: int, image_size: int, dtype: str, remat: bool
) -> dict[str, float]:
  """Compiles one encode step.

  Args:
    norm: normalisation of the backbone, "batch" or "sdnorm".
    batch_size: number of images per batch.
    image_size: side of an image in pixels.
    dtype: dtype of the layers.
    remat: whether blocks are computed twice to save memory.

  Returns:
    The peak and the temporary bytes, and the seconds that compilation took.
  """
  config = made.load_config("pacs")
  config.norm, config.pretrained = norm, ""
  config.batch_size, config.image_size = batch_size, image_size
  config.dtype, config.remat = dtype, remat
  shape = (_IMAGES, config.store_size, config.store_size, 3)
  pixels = np.broadcast_to(np.uint8(0), shape)  # Takes no memory.
  dataset = made.dataset(pixels, num_classes=7)
  experiment = build(config, dataset, sharding.make(jax.devices()[:1]))
  state = jax.eval_shape(experiment.init)
  rows = lambda dtype, *shape: jax.ShapeDtypeStruct((batch_size, *shape), dtype)
  size = config.store_size
  batch = Batch(
    image=rows(jnp.uint8, size, size, 3),
    label=rows(jnp.int32),
    row=rows(jnp.int32),
    mask=rows(jnp.float32),
  )
  step = experiment.train_steps[-1]
  start = time.monotonic()
  memory = step.lower(state, batch, experiment.key).compile().memory_analysis()
  seconds = time.monotonic() - start
  # The state is donated: it is both an argument and an output.
  held = memory.argument_size_in_bytes + memory.output_size_in_bytes
  held -= memory.alias_size_in_bytes
  return {
    "peak_bytes": held + memory.temp_size_in_bytes,
    "temporary_bytes": memory.temp_size_in_bytes,
    "seconds": seconds,
  }


if __name__ == "__main__":
  main()
