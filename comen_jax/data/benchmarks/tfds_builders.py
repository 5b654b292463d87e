"""TFDS builders of the benchmarks, in array_record format, without TensorFlow.

    builder = BUILDERS["pacs"](data_dir=out_dir, file_format="array_record")
    config = tfds.download.DownloadConfig(manual_dir=folder_with_pacs)
    builder.download_and_prepare(download_config=config)
    bytes_only = {"image": tfds.decode.SkipDecoding()}
    examples = builder.as_data_source("sketch_val", decoders=bytes_only)

There is one builder for each entry of `BENCHMARKS`. Each domain has two splits,
`<domain>_train` and `<domain>_val`. Images keep their published bytes. The
import takes seconds, so only the preparation of a benchmark imports this file.

A `GeneratorBasedBuilder` would collect a whole split in memory, and would ask
for TensorFlow above 1,000 MiB. A `ShardBasedBuilder` collects one shard.
"""

import contextlib
import functools
import io
import pathlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from comen_jax.data.benchmarks import BENCHMARKS
from comen_jax.data.benchmarks.layout import Benchmark
from comen_jax.data.ingest import archive, catalogue
from comen_jax.data.row_store import Table
from comen_jax.terminal import counting

with warnings.catch_warnings():
  warnings.simplefilter("ignore")  # The dependencies of TFDS warn.
  import tensorflow_datasets as tfds


# Of the images in a shard. A larger image is a shard of its own.
_SHARD_BYTES = 1 << 28


class PictureBuilder(tfds.core.ShardBasedBuilder, skip_registration=True):
  """The code that all builders share. The benchmark's file knows its layout.

  Attributes:
    benchmark: the published data set.
    source: files of the data set; if None, they are searched in `manual_dir`.
    found: catalogue of the images, known once they are prepared.
  """

  VERSION = tfds.core.Version("1.0.0")
  # Nothing is downloaded, so there is no list of checksums beside this file.
  # To search for one, TFDS would need a package that it does not require.
  code_path = None
  benchmark: Benchmark
  source: archive.Archive | None = None
  found: catalogue.Catalogue | None = None

  def download_and_prepare(self, **options: Any) -> None:
    with contextlib.ExitStack() as self._shown:  # Closes the progress bar.
      super().download_and_prepare(**options)

  def _info(self) -> tfds.core.DatasetInfo:
    return tfds.core.DatasetInfo(
      builder=self,
      description=f"{self.benchmark.name}: {self.benchmark.layout}",
      features=tfds.features.FeaturesDict(
        {
          "image": tfds.features.Image(),
          "label": tfds.features.ClassLabel(names=self.benchmark.classes),
          "name": tfds.features.Text(),
        }
      ),
      # `reader` finds an image by its position in the manifest.
      disable_shuffling=True,
    )

  def _shard_iterators_per_split(
    self, dl_manager
  ) -> dict[str, list[Callable[[], Iterator]]]:
    source = self.source or archive.find(
      str(dl_manager.manual_dir),
      self.benchmark.archives,
      self.benchmark.advice,
    )
    self.found = catalogue.read(
      source, self.benchmark.scan, self.benchmark.layout
    )
    count = self._shown.enter_context(
      counting.bar("copying", len(self.found.paths))
    )
    return {
      split: [
        functools.partial(self._examples, source, shard, count)
        for shard in _shards(rows, self.found.sizes)
      ]
      for split, rows in _rows_of_splits(
        self.found.table, self.benchmark.domains
      )
    }

  def _examples(
    self,
    source: archive.Archive,
    rows: Sequence[int],
    count: Callable[[int], None],
  ) -> Iterator[tuple[int, dict[str, Any]]]:
    table = self.found.table
    for row in rows:
      yield (
        row,
        {
          "image": source.read(self.found.paths[row]),
          "label": int(table.labels[row]),
          "name": table.names[row],
        },
      )
      count(1)


def _shards(rows: np.ndarray, sizes: Sequence[int]) -> list[list[int]]:
  """Divides rows into shards, in order.

  Args:
    rows: int64 [N], rows of a split.
    sizes: number of bytes of the image of every row.
  """
  shards, free = [], 0
  for row in rows.tolist():
    if not shards or sizes[row] > free:
      shards.append([])
      free = _SHARD_BYTES
    shards[-1].append(row)
    free -= sizes[row]
  return shards


def _builder(benchmark: Benchmark) -> type[PictureBuilder]:
  """Makes the builder class of a benchmark, `OfficeHome` for office_home."""
  attributes = {
    "__doc__": f"TFDS builder of {benchmark.name}.",
    "name": benchmark.name,
    "benchmark": benchmark,
    "MANUAL_DOWNLOAD_INSTRUCTIONS": benchmark.advice,
  }
  class_name = benchmark.name.title().replace("_", "")
  return type(class_name, (PictureBuilder,), attributes)


BUILDERS = {name: _builder(spec) for name, spec in BENCHMARKS.items()}


def write(
  name: str, source: archive.Archive, folder: pathlib.Path
) -> catalogue.Catalogue:
  """Writes the images of a benchmark as TFDS files into `folder`."""
  builder = BUILDERS[name](data_dir=str(folder), file_format="array_record")
  builder.source = source
  tfds.disable_progress_bar()
  config = tfds.download.DownloadConfig(manual_dir=str(source.path.parent))
  # TFDS announces a download on stdout, although there is none.
  with contextlib.redirect_stdout(io.StringIO()):
    builder.download_and_prepare(download_config=config)
  return builder.found


def reader(
  name: str, folder: pathlib.Path, table: Table
) -> Callable[[str], bytes]:
  """Returns a function that reads an image, written by `write`, by its name."""
  builder = BUILDERS[name](data_dir=str(folder), file_format="array_record")
  places = {}
  for split, rows in _rows_of_splits(table, builder.benchmark.domains):
    stored = builder.as_data_source(
      split, decoders={"image": tfds.decode.SkipDecoding()}
    )
    for place, row in enumerate(rows):
      places[table.names[row]] = (stored, place)

  def read(name: str) -> bytes:
    stored, place = places[name]
    return stored[place]["image"]

  return read


def _rows_of_splits(
  table: Table, domains: Sequence[str]
) -> Iterator[tuple[str, np.ndarray]]:
  """Yields the name and rows of each split; leaves out empty splits."""
  for domain, domain_name in enumerate(domains):
    for split, split_name in enumerate(("train", "val")):
      rows = (table.domains == domain) & (table.splits == split)
      if rows.any():
        yield f"{domain_name}_{split_name}", np.flatnonzero(rows)
