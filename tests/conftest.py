"""Eight CPU devices, so that every test runs on a real mesh."""

import importlib.util
import os
import pathlib
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (
  os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import jax
import numpy as np
import pytest
from PIL import Image

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory):
  """Nothing is read from, or left in, the user's cache."""
  os.environ["COMEN_JAX_CACHE"] = str(tmp_path_factory.mktemp("cache"))
  # TFDS leaves an empty folder behind with each data set that it writes.
  tempfile.tempdir = str(tmp_path_factory.mktemp("temporary"))
  # Runs that are resumed compile the same steps again and again.
  compiled = str(tmp_path_factory.mktemp("compiled"))
  jax.config.update("jax_compilation_cache_dir", compiled)
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@pytest.fixture
def cache(monkeypatch, tmp_path) -> pathlib.Path:
  """A cache that only this test has seen."""
  monkeypatch.setenv("COMEN_JAX_CACHE", str(tmp_path / "cache"))
  return tmp_path / "cache"


@pytest.fixture(scope="session")
def tiny_digits_dg(tmp_path_factory) -> pathlib.Path:
  """A data_dir in Digits-DG's layout: 12 train, 4 val per class and domain.

  A class is a bar's place, a domain its colours, so that a small network learns
  both within a few steps.
  """
  root = tmp_path_factory.mktemp("data")
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
  return root


def load_config(name: str):
  """The config of `configs/<name>.py`, `<name>:<variant>` as on the command."""
  name, *variant = name.split(":")
  place = ROOT / "configs" / f"{name}.py"
  spec = importlib.util.spec_from_file_location(f"config_{name}", place)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.get_config(*variant)


@pytest.fixture
def tiny_config(tiny_digits_dg):
  """COMEN on the tiny pictures: one epoch per stage."""
  config = load_config("digits")
  config.data_dir = str(tiny_digits_dg)
  config.epochs = 3
  config.stage_shares = (0.34, 0.33, 0.33)
  config.batch_size = 48
  config.eval_batch_size = 96
  config.comen.pretrain_steps = 50
  config.logging.tensorboard = False
  return config
