"""Target images that a run leaves as files."""

import numpy as np
from PIL import Image

from comen_jax.data.dataset import Dataset, leave_one_out
from comen_jax.run import examples

NAMES = ("a/../../b", "c d", *(f"class{n}" for n in range(2, 14)))


def test_there_is_one_target_image_of_each_class_up_to_ten(tmp_path):
  rng = np.random.default_rng(0)
  rows = np.arange(84)
  dataset = Dataset(
    name="made",
    images=rng.integers(0, 256, (84, 8, 8, 3), np.uint8),
    labels=(rows % len(NAMES)).astype(np.int32),
    domains=(rows // 42).astype(np.int32),
    splits=(rows % 2).astype(np.uint8),
    class_names=NAMES,
    domain_names=("p", "q"),
    manifest="0" * 64,
    default_target="q",
  )
  for _ in range(2):  # A run that is stopped here does it again.
    examples.save(tmp_path / "examples", dataset, leave_one_out(dataset, "q"))
  files = sorted(tmp_path.rglob("*.png"))
  assert {f.parent for f in files} == {tmp_path / "examples"}
  assert len(files) == 10
  assert {"0_a_.._.._b.png", "1_c_d.png"} <= {f.name for f in files}
  for file in files:
    label = int(file.name.split("_")[0])
    image = dataset.images[42:][dataset.labels[42:] == label][0]
    assert np.array_equal(np.asarray(Image.open(file)), image)
