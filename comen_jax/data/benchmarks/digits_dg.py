"""Digits-DG: four domains of digits, 600 images per class and domain."""

import itertools
import re

from comen_jax.data.benchmarks.layout import Benchmark
from comen_jax.data.dataset import TRAIN, VAL
from comen_jax.data.ingest.archive import Archive
from comen_jax.data.ingest.contents import Contents, Entry

_SPLITS = {"train": TRAIN, "val": VAL}
_MEMBER = re.compile(
  r"(?:.*/)?((mnist|mnist_m|svhn|syn)/(train|val)/([0-9])/[^/]+)",
  re.IGNORECASE,
)


def _scan(source: Archive) -> Contents:
  return BENCHMARK.contents(
    [
      Entry(
        path=m[0],
        name=m[1],
        label=int(m[4]),
        domain=BENCHMARK.domains.index(m[2].lower()),
        split=_SPLITS[m[3].lower()],
      )
      for m in map(_MEMBER.fullmatch, source.pictures)
      if m
    ]
  )


_DOMAINS = ("mnist", "mnist_m", "svhn", "syn")
_CLASSES = tuple("0123456789")

BENCHMARK = Benchmark(
  name="digits_dg",
  archives=("digits_dg",),
  domains=_DOMAINS,
  classes=_CLASSES,
  default_target="mnist_m",
  layout="{mnist,mnist_m,svhn,syn}/{train,val}/{0..9}/*.jpg",
  source="Dassl (github.com/KaiyangZhou/Dassl.pytorch, DATASETS.md)",
  scan=_scan,
  store_size=32,
  published_domains={d: (4800, 1200) for d in _DOMAINS},
  published_cells={
    cell: (480, 120) for cell in itertools.product(_DOMAINS, _CLASSES)
  },
)
