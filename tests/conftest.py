"""What all tests share: devices, compiler settings, caches and tiny data.

There are eight CPU devices, so that every test runs on a real mesh. Compiling
is most of the work of these tests, so XLA optimises nothing, and all processes
of a test run share one cache of compiled functions.
"""

import gc
import os
import pathlib
import shutil
import tempfile

from xla_flags import XLA_FLAGS

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# The first process of a test run sets these; workers and the processes that
# tests start inherit them. The eight devices are not inherited.
if "COMEN_JAX_TEST_RUN" not in os.environ:
  os.environ["COMEN_JAX_TEST_RUN"] = tempfile.mkdtemp(prefix="comen_jax_tests-")
  os.environ["XLA_FLAGS"] = f"{XLA_FLAGS} {os.environ.get('XLA_FLAGS', '')}"
# Tests neither read nor change the user's own prepared data.
os.environ["COMEN_JAX_CACHE"] = os.environ["COMEN_JAX_TEST_RUN"] + "/cache"
os.environ.setdefault(
  "JAX_COMPILATION_CACHE_DIR", os.environ["COMEN_JAX_TEST_RUN"] + "/compiled"
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax
import numpy as np
import pytest
from PIL import Image

from benchmarks.made import load_config

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

ROOT = pathlib.Path(__file__).parents[1]
SHARED = pathlib.Path(os.environ["COMEN_JAX_TEST_RUN"])


def pytest_collection_modifyitems(items):
  """Puts the longest files first, so that two workers end together."""
  longest = {"test_train.py": 0, "test_configs.py": 1, "test_main.py": 2}
  items.sort(key=lambda item: longest.get(item.path.name, len(longest)))


def pytest_collection_finish():
  """Leaves what imports made out of garbage collection.

  Tracing makes many objects. Each full collection would pass over all modules
  again, which took a twentieth of the time of these tests.
  """
  gc.freeze()
  gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure(config):
  """Removes the shared folder when the first process ends."""
  if not hasattr(config, "workerinput"):
    shutil.rmtree(SHARED, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory):
  """Collects the empty folders that TFDS leaves behind."""
  tempfile.tempdir = str(tmp_path_factory.mktemp("temporary"))


@pytest.fixture(scope="module")
def plain_convolutions():
  """Winograd's functions take twice as long to compile."""
  from comen_jax.nn import winograd

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(winograd, "suits", lambda *_: False)
    yield


@pytest.fixture
def cache(monkeypatch, tmp_path) -> pathlib.Path:
  """Gives a test a cache of prepared data of its own."""
  monkeypatch.setenv("COMEN_JAX_CACHE", str(tmp_path / "cache"))
  return tmp_path / "cache"


@pytest.fixture(scope="session")
def tiny_digits_dg() -> pathlib.Path:
  """A data_dir in Digits-DG's layout: 12 train, 4 val per class and domain.

  The class is the place of a bar and the domain its colours, so that a small
  network learns both within a few steps. All workers share the folder.
  """
  place = SHARED / "tiny_digits_dg"
  if not place.exists():
    draft = pathlib.Path(tempfile.mkdtemp(dir=SHARED))
    draw_digits_dg(draft)
    try:
      draft.rename(place)
    except OSError:
      if not place.exists():  # Another worker was not faster.
        raise
  return place


def draw_digits_dg(root: pathlib.Path) -> None:
  """Writes the tiny images; tests/slurm.sh uses them as well."""
  rng = np.random.default_rng(0)
  looks = {  # Ink and paper.
    "mnist": ((255, 255, 255), (0, 0, 0)),
    "mnist_m": ((90, 200, 60), (160, 90, 120)),
    "svhn": ((70, 80, 160), (120, 130, 110)),
    "syn": ((250, 200, 20), (200, 20, 20)),
  }
  for domain, (ink, paper) in looks.items():
    for split, count in (("train", 12), ("val", 4)):
      for digit in range(10):
        folder = root / "digits_dg" / domain / split / str(digit)
        folder.mkdir(parents=True)
        for i in range(count):
          picture = np.tile(np.array(paper, float), (32, 32, 1))
          picture[4 + i % 4 : 28, 3 * digit + 1 : 3 * digit + 4] = ink
          picture += rng.normal(0, 12, picture.shape)
          picture = np.clip(picture, 0, 255).astype(np.uint8)
          Image.fromarray(picture).save(folder / f"{i}.png")


@pytest.fixture
def tiny_config(tiny_digits_dg):
  return make_tiny_config(tiny_digits_dg)


def make_tiny_config(data_dir: pathlib.Path):
  """Returns a config of COMEN on tiny images: seven steps in an epoch.

  Tests that leave the network and the optimiser as they are share the compiled
  steps.
  """
  config = load_config("digits")
  config.data_dir = str(data_dir)
  config.store_size = config.image_size = 16
  config.epochs = 6
  config.stage_shares = (0.34, 0.33, 0.33)
  config.batch_size = 48
  config.eval_batch_size = 120
  config.comen.pretrain_steps = 50
  config.logging.tensorboard = False
  return config
