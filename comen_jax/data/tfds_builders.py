"""The benchmarks as TFDS builders: array_record, no TensorFlow.

    builder = Pacs(data_dir=to, file_format="array_record")
    config = tfds.download.DownloadConfig(manual_dir=folder_of_pacs_zip)
    builder.download_and_prepare(download_config=config)
    builder.as_data_source("sketch_val")

There is a split per domain, `<domain>_train` and `<domain>_val`. Pictures keep
their published bytes. Importing this takes long; only preparing does.
"""

import contextlib
import io
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from tqdm import tqdm

from comen_jax.data import digits_dg, office_home, pacs, vlcs
from comen_jax.data.ingest import archive, catalogue
from comen_jax.data.layout import Benchmark
from comen_jax.data.row_store import Table


class PictureBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
  """All that the builders share; a benchmark's file knows its layouts.

  Attributes:
    benchmark: the data set.
    source: its files; None: to be found in TFDS's manual_dir.
    found: what was prepared, once it is.
  """

  VERSION = tfds.core.Version("1.0.0")
  # Nothing is downloaded, so there is no list of checksums beside this file;
  # TFDS's search for one needs a package that it does not require.
  code_path = None
  benchmark: Benchmark
  source: archive.Archive | None = None
  found: catalogue.Catalogue | None = None

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
      # Rows are found again by their place in the manifest.
      disable_shuffling=True,
    )

  def _split_generators(self, dl_manager) -> dict[str, Iterator]:
    source = self.source or archive.find(
      str(dl_manager.manual_dir),
      self.benchmark.archives,
      self.benchmark.advice,
    )
    self.found = catalogue.read(
      source, self.benchmark.scan(source), self.benchmark.layout
    )
    return {
      split: self._generate_examples(source, rows)
      for split, rows in _rows_of_splits(
        self.found.table, self.benchmark.domains
      )
    }

  def _generate_examples(
    self, source: archive.Archive, rows: np.ndarray
  ) -> Iterator[tuple[int, dict[str, Any]]]:
    table = self.found.table
    bar = tqdm(rows, "copying", leave=False, unit="img", disable=None)
    for place, row in enumerate(bar):
      yield (
        place,
        {
          "image": source.read(self.found.paths[row]),
          "label": int(table.labels[row]),
          "name": table.names[row],
        },
      )


class DigitsDg(PictureBuilder):
  """Digits-DG."""

  benchmark = digits_dg.BENCHMARK
  MANUAL_DOWNLOAD_INSTRUCTIONS = benchmark.advice


class Pacs(PictureBuilder):
  """PACS."""

  benchmark = pacs.BENCHMARK
  MANUAL_DOWNLOAD_INSTRUCTIONS = benchmark.advice


class Vlcs(PictureBuilder):
  """VLCS."""

  benchmark = vlcs.BENCHMARK
  MANUAL_DOWNLOAD_INSTRUCTIONS = benchmark.advice


class OfficeHome(PictureBuilder):
  """Office-Home."""

  benchmark = office_home.BENCHMARK
  MANUAL_DOWNLOAD_INSTRUCTIONS = benchmark.advice


BUILDERS = {b.benchmark.name: b for b in (DigitsDg, Pacs, Vlcs, OfficeHome)}


def write(
  name: str, source: archive.Archive, folder: pathlib.Path
) -> catalogue.Catalogue:
  """Prepares that benchmark in `folder`."""
  builder = BUILDERS[name](data_dir=str(folder), file_format="array_record")
  builder.source = source
  tfds.disable_progress_bar()
  config = tfds.download.DownloadConfig(manual_dir=str(source.path.parent))
  # TFDS tells stdout of a download that is none.
  with contextlib.redirect_stdout(io.StringIO()):
    builder.download_and_prepare(download_config=config)
  return builder.found


def reader(
  name: str, folder: pathlib.Path, table: Table
) -> Callable[[str], bytes]:
  """How to read a picture that `write` has put into `folder`, by its name."""
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
  """Rows of each split's pictures, in the table's order; no empty split."""
  for domain, domain_name in enumerate(domains):
    for split, split_name in enumerate(("train", "val")):
      rows = (table.domains == domain) & (table.splits == split)
      if rows.any():
        yield f"{domain_name}_{split_name}", np.flatnonzero(rows)
