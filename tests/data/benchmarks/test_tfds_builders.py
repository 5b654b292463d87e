"""The TFDS builders, made from the list of benchmarks."""

import re
import textwrap

import numpy as np
import pytest

from comen_jax.data import registry
from comen_jax.data.benchmarks import BENCHMARKS, tfds_builders
from comen_jax.data.ingest import archive
from comen_jax.errors import UserError
from data.helpers import cache_at, nothing_half_done, rows_of


def test_prepared_files_are_a_tfds_data_set(tiny_digits_dg, cache):
  found = registry.load_prepared("digits_dg", str(tiny_digits_dg), 32)
  builder = tfds_builders.BUILDERS["digits_dg"](
    data_dir=str(found.folder / "tfds"), file_format="array_record"
  )
  rows = rows_of(found)
  assert len(builder.info.splits) == 8
  for split, info in builder.info.splits.items():
    assert info.num_examples == (120 if split.endswith("train") else 40)
  tfds = tfds_builders.tfds
  source = builder.as_data_source(
    "svhn_val", decoders={"image": tfds.decode.SkipDecoding()}
  )
  for example in source:
    name = example["name"].decode()
    original = tiny_digits_dg / "digits_dg" / name
    assert example["image"] == original.read_bytes()
    assert rows[name] == (str(example["label"]), "svhn", "val")


def test_a_split_of_several_shards_gives_the_same_rows(
  tiny_digits_dg, tmp_path, monkeypatch
):
  found = {}
  for limit in (1 << 28, 20_000):
    monkeypatch.setattr(tfds_builders, "_SHARD_BYTES", limit)
    with cache_at(tmp_path / str(limit)):
      found[limit] = registry.load_prepared(
        "digits_dg", str(tiny_digits_dg), 32
      )
  one, several = found.values()
  count = lambda prepared: len(list(prepared.folder.rglob("*.array_record-*")))
  assert count(one) == 8
  assert count(several) > 20
  assert several.dataset.manifest == one.dataset.manifest
  assert rows_of(several) == rows_of(one)
  np.testing.assert_array_equal(several.dataset.images, one.dataset.images)
  for file in several.folder.rglob("*.array_record-*"):
    assert file.stat().st_size < 200_000  # The format pads a file to 64 KiB.


def test_an_image_that_is_lost_while_it_is_copied_leaves_nothing(
  tiny_digits_dg, cache, monkeypatch
):
  read = archive.Archive.read

  def lost(self, name):
    if name.endswith("svhn/train/5/3.png"):
      raise UserError(f"{name} is gone")
    return read(self, name)

  monkeypatch.setattr(archive.Archive, "read", lost)
  with pytest.raises(UserError, match=r"svhn/train/5/3\.png is gone"):
    registry.load("digits_dg", str(tiny_digits_dg), 32)
  assert nothing_half_done(cache)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_builder(name, tmp_path):
  builder = tfds_builders.BUILDERS[name](data_dir=str(tmp_path))
  spec = BENCHMARKS[name]
  assert builder.name == name
  assert builder.benchmark is spec
  assert spec.advice == builder.MANUAL_DOWNLOAD_INSTRUCTIONS
  assert tuple(builder.info.features["label"].names) == spec.classes


def test_the_example_of_the_docstring_runs(tiny_digits_dg, tmp_path):
  lines = re.findall("^    .*\n", tfds_builders.__doc__, re.MULTILINE)
  example = textwrap.dedent("".join(lines))
  names = {
    "BUILDERS": tfds_builders.BUILDERS,
    "tfds": tfds_builders.tfds,
    "out_dir": str(tmp_path),
    "folder_with_digits_dg": str(tiny_digits_dg),
  }
  exec(example.replace("pacs", "digits_dg").replace("sketch", "syn"), names)
  builder, examples = names["builder"], names["examples"]
  assert builder.info.splits["syn_train"].num_examples == 120
  assert len(builder.found.table.names) == 640
  assert len(examples) == 40
  name = examples[3]["name"].decode()
  original = tiny_digits_dg / "digits_dg" / name
  assert examples[3]["image"] == original.read_bytes()
